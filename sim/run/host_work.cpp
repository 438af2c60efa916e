#include "sim/run/host_work.hpp"

#include <variant>

namespace stepcast::run {

std::optional<HostWork> host_work(const plan::Body& body) {
  if (std::holds_alternative<plan::HostCompute>(body)) return HostWork::kCores;
  const auto* copy = std::get_if<plan::Copy>(&body);
  if (copy == nullptr) return std::nullopt;
  if (copy->kind == plan::CopyKind::kHostToDevice) return HostWork::kToDevice;
  if (copy->kind == plan::CopyKind::kDeviceToHost) return HostWork::kToHost;
  return std::nullopt;
}

double flow_bytes(const plan::Body& body) {
  if (const auto* cores = std::get_if<plan::HostCompute>(&body)) return cores->bytes.si() / kCoresOfMemory;
  return std::get<plan::Copy>(body).bytes.si();
}

}  // namespace stepcast::run
