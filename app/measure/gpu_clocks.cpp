#include "app/measure/gpu_clocks.hpp"

#include <filesystem>

#include <fmt/format.h>

#include "app/measure/child_process.hpp"
#include "sim/base/file.hpp"

namespace stepcast::app {

namespace fs = std::filesystem;

std::int32_t gpus_here() {
  std::error_code error;
  std::int32_t count = 0;
  for (fs::directory_iterator i{"/proc/driver/nvidia/gpus", error}; !error && i != fs::directory_iterator{}; i.increment(error)) ++count;
  return count;
}

LockedClock::LockedClock(std::int32_t mhz) {
  const int status = Child{{.words = {"nvidia-smi", fmt::format("--lock-gpu-clocks={0},{0}", mhz)}, .environment = {}}}.wait();
  if (status != 0) throw SystemError(fmt::format("the GPU's clock was not locked at {} MHz: nvidia-smi ended with status {}", mhz, status));
}

LockedClock::~LockedClock() {
  try {
    Child{{.words = {"nvidia-smi", "--reset-gpu-clocks"}, .environment = {}}}.wait();
  } catch (const std::exception&) {  // it was there a moment ago: nothing more can be done
  }
}

}  // namespace stepcast::app
