// app/validate/instruction_names.hpp — what instructions are called in tables of runs and of their forecasts.
#pragma once

#include <string>

#include "sim/plan/instruction.hpp"

namespace stepcast::app {

// "tensor all_reduce", "send", "copy host_to_device", ...; kernels are `kernel`. Empty for what takes no time.
std::string instruction_name(const plan::Body& body, const std::string& kernel);

}  // namespace stepcast::app
