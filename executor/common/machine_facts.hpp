// executor/common/machine_facts.hpp — what a measurement has to say about where it was made.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepcast::executor {

// "host", "cpu", "cores", "kernel", "memory_bytes", "frequency_mhz" (as found, of the first core).
std::vector<std::pair<std::string, std::string>> machine_facts();

// 16 hexadecimal digits: which plan file was played.
std::string text_hash(std::string_view text);

// Of the first core, now; 0 where the kernel does not say.
double clock_mhz();

}  // namespace stepcast::executor
