// app/measure/gpu_clocks.hpp — the GPUs that the driver lists, and their clock held at one value by the driver's own tool, for as long as an object
// lives. Used only where the user asks for it (`measure --clocks`).
#pragma once

#include <cstdint>

namespace stepcast::app {

// Zero where there is no driver.
std::int32_t gpus_here();

class LockedClock {
 public:
  // `nvidia-smi --lock-gpu-clocks` on every GPU. Throws SystemError where the tool is missing or refuses, mostly for lack of rights.
  explicit LockedClock(std::int32_t mhz);
  ~LockedClock();  // sets it free
  LockedClock(const LockedClock&) = delete;
  LockedClock& operator=(const LockedClock&) = delete;
};

}  // namespace stepcast::app
