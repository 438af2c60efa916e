#include "app/scenario/evidence.hpp"

#include <type_traits>
#include <utility>

#include "sim/scenario/key.hpp"
#include "sim/scenario/kinds.hpp"
#include "topologies/catalogue_keys.hpp"

namespace stepcast::app {
namespace {

// A visitor over key lists that looks at figures only.
class Counter {
 public:
  Counter(Evidence& evidence, std::string name, std::string rate_key)
      : evidence_{evidence}, name_{std::move(name)}, rate_key_{std::move(rate_key)} {}

  template <class T>
  void key(const char* name, T& member, const char*, const scenario::Rule& = {}) {
    if constexpr (scenario::IsOptional<T>) {
      if (member) key(name, *member, "");
    } else if constexpr (scenario::IsFigure<T>) {
      count(name, member);
    } else if constexpr (std::is_class_v<T> && requires { member.visit(std::declval<Counter&>()); }) {
      Counter inner{evidence_, name_ + '.' + name, rate_key_};
      member.visit(inner);
    }
  }

 private:
  template <class T>
  void count(const std::string& name, const topology::Figure<T>& figure) {
    if constexpr (std::is_same_v<T, FlopRate>) {
      if (name != rate_key_) return;
    }
    switch (figure.basis) {
      case topology::Basis::kMeasured: ++evidence_.measured; break;
      case topology::Basis::kDatasheet: ++evidence_.datasheet; break;
      case topology::Basis::kPublished: ++evidence_.published; break;
      case topology::Basis::kAssumed:
        ++evidence_.assumed;
        evidence_.assumed_names.push_back(name_ + '.' + name);
        break;
    }
  }

  Evidence& evidence_;
  std::string name_;
  std::string rate_key_;
};

template <class T>
void count_in(T object, const std::string& name, const std::string& rate_key, Evidence& evidence) {
  Counter counter{evidence, name, rate_key};
  scenario::visit_struct(counter, object);
}

}  // namespace

Evidence count_evidence(const topology::ClusterHardware& hardware, const calibration::ChosenProfile& profile,
                        const std::string& rate_key, bool network) {
  Evidence evidence;
  count_in(hardware.gpu, hardware.gpu.name, rate_key, evidence);
  count_in(hardware.node, hardware.node.name, rate_key, evidence);
  if (network) count_in(hardware.nic, hardware.nic.name, rate_key, evidence);
  if (network)
    for (const topology::NetworkCards& cards : hardware.side_networks) count_in(cards.nic, cards.nic.name, rate_key, evidence);
  count_in(profile.profile, "profile " + profile.profile.name, rate_key, evidence);
  return evidence;
}

}  // namespace stepcast::app
