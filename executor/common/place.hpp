// executor/common/place.hpp — which of how many processes this is, as launchers say it in the environment.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace stepcast::executor {

struct ProcessPlace {
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::uint32_t local_rank = 0;  // on its host
  std::string launcher = "none";
};

// Open MPI, MPICH's Hydra, Slurm, torchrun, in this order; alone where none of them speaks. `variable` gives an environment variable.
// Throws UserError where what a launcher says makes no sense.
ProcessPlace find_place(const std::function<std::optional<std::string>(const char*)>& variable);
// From this process's environment.
ProcessPlace find_place();

}  // namespace stepcast::executor
