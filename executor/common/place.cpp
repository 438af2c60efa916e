#include "executor/common/place.hpp"

#include <array>
#include <charconv>
#include <cstdlib>

#include "sim/base/diagnostic.hpp"

namespace stepcast::executor {
namespace {

struct Launcher {
  const char* name;
  const char* rank;
  const char* size;
  const char* local_rank;
};

constexpr std::array<Launcher, 4> kLaunchers{{{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
                                              {"Hydra", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
                                              {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
                                              {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"}}};

std::uint32_t number(const char* name, const std::string& text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) {
    throw UserError(Diagnostic{.path = name, .problem = "not a number in the environment", .expected = "a whole number, 0 or more", .got = text});
  }
  return value;
}

}  // namespace

ProcessPlace find_place(const std::function<std::optional<std::string>(const char*)>& variable) {
  for (const Launcher& launcher : kLaunchers) {
    const auto rank = variable(launcher.rank);
    const auto size = variable(launcher.size);
    if (!rank || !size) continue;
    ProcessPlace place{.rank = number(launcher.rank, *rank), .size = number(launcher.size, *size), .local_rank = 0, .launcher = launcher.name};
    if (place.rank >= place.size) {
      throw UserError(Diagnostic{.path = launcher.rank, .problem = "not below " + std::string{launcher.size}, .expected = "0 to " + std::to_string(place.size) + " less one", .got = *rank});
    }
    const auto local = variable(launcher.local_rank);
    place.local_rank = local ? number(launcher.local_rank, *local) : place.rank;
    return place;
  }
  return {};
}

ProcessPlace find_place() {
  return find_place([](const char* name) -> std::optional<std::string> {
    const char* const value = std::getenv(name);
    if (value == nullptr) return std::nullopt;
    return value;
  });
}

}  // namespace stepcast::executor
