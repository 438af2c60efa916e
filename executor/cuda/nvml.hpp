// executor/cuda/nvml.hpp — clocks, power, temperature and throttle reasons as the driver tells them. The library is loaded at run time: where
// it is missing nothing is known, and nothing fails. Nothing is ever set.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace stepcast::executor::cuda {

struct GpuReading {
  std::optional<unsigned> sm_mhz;
  std::optional<unsigned> memory_mhz;
  std::optional<unsigned> power_mw;
  std::optional<unsigned> temperature_c;
  std::optional<std::uint64_t> throttle_reasons;  // NVML's bits
};

class Nvml {
 public:
  // `pci_bus_id` as CUDA prints it.
  explicit Nvml(const std::string& pci_bus_id);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  [[nodiscard]] GpuReading read() const;
  [[nodiscard]] std::string driver() const;              // empty: not known
  [[nodiscard]] std::optional<unsigned> power_limit_mw() const;

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace stepcast::executor::cuda
