// executor/cpu/machine_facts.hpp — what a measurement has to say about where it was made.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace stepcast::executor {

// "host", "cpu", "cores", "kernel", "memory_bytes", "frequency_mhz" (as found, of the first core).
std::vector<std::pair<std::string, std::string>> machine_facts();

// Of the first core, now; 0 where the kernel does not say.
double clock_mhz();

}  // namespace stepcast::executor
