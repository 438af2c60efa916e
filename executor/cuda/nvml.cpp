#include "executor/cuda/nvml.hpp"

#include <dlfcn.h>

#include <array>

namespace stepcast::executor::cuda {
namespace {

// The few types and numbers of NVML's documented interface that are used; the toolkit here has no header of it.
using Device = void*;
using Status = int;
constexpr Status kSuccess = 0;
constexpr unsigned kClockSm = 1;
constexpr unsigned kClockMemory = 2;
constexpr unsigned kTemperatureGpu = 0;

}  // namespace

struct Nvml::Library {
  void* handle = nullptr;
  Device device = nullptr;
  Status (*shutdown)() = nullptr;
  Status (*clock)(Device, unsigned, unsigned*) = nullptr;
  Status (*power)(Device, unsigned*) = nullptr;
  Status (*limit)(Device, unsigned*) = nullptr;
  Status (*temperature)(Device, unsigned, unsigned*) = nullptr;
  Status (*throttle)(Device, unsigned long long*) = nullptr;
  Status (*driver)(char*, unsigned) = nullptr;

  template <class Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(::dlsym(handle, name));
  }
};

Nvml::Nvml(const std::string& pci_bus_id) {
  void* const handle = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return;
  auto library = std::make_unique<Library>();
  library->handle = handle;
  Status (*init)() = nullptr;
  Status (*by_bus)(const char*, Device*) = nullptr;
  library->find(init, "nvmlInit_v2");
  library->find(by_bus, "nvmlDeviceGetHandleByPciBusId_v2");
  if (init == nullptr || by_bus == nullptr || init() != kSuccess) {
    ::dlclose(handle);
    return;
  }
  library->find(library->shutdown, "nvmlShutdown");
  library->find(library->clock, "nvmlDeviceGetClockInfo");
  library->find(library->power, "nvmlDeviceGetPowerUsage");
  library->find(library->limit, "nvmlDeviceGetEnforcedPowerLimit");
  library->find(library->temperature, "nvmlDeviceGetTemperature");
  library->find(library->throttle, "nvmlDeviceGetCurrentClocksThrottleReasons");
  library->find(library->driver, "nvmlSystemGetDriverVersion");
  if (by_bus(pci_bus_id.c_str(), &library->device) != kSuccess) library->device = nullptr;
  library_ = std::move(library);
}

Nvml::~Nvml() {
  if (!library_) return;
  if (library_->shutdown != nullptr) library_->shutdown();
  ::dlclose(library_->handle);
}

GpuReading Nvml::read() const {
  GpuReading reading;
  if (!library_ || library_->device == nullptr) return reading;
  const Library& l = *library_;
  unsigned value = 0;
  if (l.clock != nullptr && l.clock(l.device, kClockSm, &value) == kSuccess) reading.sm_mhz = value;
  if (l.clock != nullptr && l.clock(l.device, kClockMemory, &value) == kSuccess) reading.memory_mhz = value;
  if (l.power != nullptr && l.power(l.device, &value) == kSuccess) reading.power_mw = value;
  if (l.temperature != nullptr && l.temperature(l.device, kTemperatureGpu, &value) == kSuccess) reading.temperature_c = value;
  unsigned long long reasons = 0;
  if (l.throttle != nullptr && l.throttle(l.device, &reasons) == kSuccess) reading.throttle_reasons = reasons;
  return reading;
}

std::string Nvml::driver() const {
  std::array<char, 96> text{};
  if (!library_ || library_->driver == nullptr || library_->driver(text.data(), text.size()) != kSuccess) return {};
  return text.data();
}

std::optional<unsigned> Nvml::power_limit_mw() const {
  unsigned value = 0;
  if (!library_ || library_->device == nullptr || library_->limit == nullptr || library_->limit(library_->device, &value) != kSuccess) return std::nullopt;
  return value;
}

}  // namespace stepcast::executor::cuda
