#include "app/validate/instruction_names.hpp"

#include <variant>

#include <fmt/format.h>

namespace stepcast::app {

std::string instruction_name(const plan::Body& body, const std::string& kernel) {
  struct Name {
    const std::string& kernel;
    std::string operator()(const plan::Compute&) const { return kernel; }
    std::string operator()(const plan::Collective& c) const { return fmt::format("{} {}", plan::name_of(c.purpose), plan::name_of(c.kind)); }
    std::string operator()(const plan::Send&) const { return "send"; }
    std::string operator()(const plan::Recv&) const { return "receive"; }
    std::string operator()(const plan::Copy& c) const { return fmt::format("copy {}", plan::name_of(c.kind)); }
    std::string operator()(const plan::HostCompute&) const { return "host compute"; }
    std::string operator()(const plan::LoadBatch&) const { return "input"; }
    std::string operator()(const plan::Alloc&) const { return ""; }
    std::string operator()(const plan::Free&) const { return ""; }
    std::string operator()(const plan::Record&) const { return ""; }
    std::string operator()(const plan::Wait&) const { return ""; }
  };
  return std::visit(Name{kernel}, body);
}

}  // namespace stepcast::app
