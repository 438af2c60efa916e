#include "app/forecast/uncertainty.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "calibration/gpu_parameters.hpp"
#include "calibration/profile_parameters.hpp"
#include "sim/base/text.hpp"
#include "topologies/catalogue_keys.hpp"

namespace stepcast::app {
namespace {

using calibration::ProfileParameter;

enum class Place : std::uint8_t { kGpu, kNode, kNic, kProfile, kNetworkProfile };

struct Target {
  Place place = Place::kGpu;
  std::string name;
  ProfileParameter figure;
};

// Counts are known, or a choice of the library's; capacities and limits say whether a plan fits, not how long it takes; rates of other
// number formats are not used.
bool can_matter(const ProfileParameter& figure, const std::string& rate_key) {
  if (figure.whole || figure.unit == "W" || figure.key == "memory" || figure.key == "usable_memory" || figure.key == "overhead.context" || figure.key == "overhead.gemm_workspace") return false;
  return figure.unit != "FLOP/s" || figure.key == rate_key || figure.key == "fp32";
}

// The network profile that this setup's collectives take, as in pick_collectives().
const calibration::NetworkCollectives* network_profile(const HardwareShelf& shelf, const Setup& setup) {
  if (setup.scenario.cluster.nodes < 2 || setup.profile.profile.network_collectives) return nullptr;
  return calibration::find_network_profile(shelf.networks, setup.hardware.nic.name, setup.hardware.node.name);
}

std::vector<Target> targets_of(const HardwareShelf& shelf, const Setup& setup) {
  const std::string rate_key = plan::name_of(setup.matrix_dtype);
  const bool network = setup.scenario.cluster.nodes > 1;
  std::vector<Target> targets;
  const auto add = [&](Place place, const std::string& prefix, std::vector<ProfileParameter> figures) {
    for (ProfileParameter& figure : figures) {
      if (figure.plus_minus <= 0.0 || !can_matter(figure, rate_key)) continue;
      std::string name = prefix + '.' + figure.key;
      targets.push_back({place, std::move(name), std::move(figure)});
    }
  };
  add(Place::kGpu, setup.hardware.gpu.name, calibration::parameters_of(setup.hardware.gpu));
  add(Place::kNode, setup.hardware.node.name, calibration::parameters_of(setup.hardware.node));
  if (network) add(Place::kNic, setup.hardware.nic.name, calibration::parameters_of(setup.hardware.nic));
  add(Place::kProfile, "profile " + setup.profile.profile.name, calibration::parameters_of(setup.profile.profile));
  if (const auto* profile = network_profile(shelf, setup)) add(Place::kNetworkProfile, "profile " + profile->name, calibration::parameters_of(*profile));
  return targets;
}

// The value one deviation away: upwards, or down where the key's bounds or whole numbers allow no more.
double moved(const ProfileParameter& figure) {
  const double up = figure.within(figure.value + figure.plus_minus);
  return up > figure.value ? up : figure.within(figure.value - figure.plus_minus);
}

void move(Setup& setup, HardwareShelf& shelf, const Target& target) {
  const double value = moved(target.figure);
  const std::string& key = target.figure.key;
  switch (target.place) {
    case Place::kGpu: calibration::set_parameter(setup.hardware.gpu, key, value); break;
    case Place::kNode: calibration::set_parameter(setup.hardware.node, key, value); break;
    case Place::kNic: calibration::set_parameter(setup.hardware.nic, key, value); break;
    case Place::kProfile: calibration::set_parameter(setup.profile.profile, key, value); break;
    case Place::kNetworkProfile:
      for (calibration::NetworkCollectives& profile : shelf.networks) {
        if (target.name.starts_with("profile " + profile.name + '.')) calibration::set_parameter(profile, key, value);
      }
      break;
  }
}

// What GPU and profile say of the plan's kernels, on the whole GPU and on three quarters of it: where none of it moves, no step does.
std::vector<std::int64_t> kernel_times(const Setup& setup) {
  std::vector<std::int64_t> times;
  const gpu::GpuModel whole = gpu_model_of(setup);
  gpu::GpuParameters shared = whole.parameters();
  shared.hardware.sms_taken = shared.hardware.sm_count / 4;
  const gpu::GpuModel rest{shared};
  for (const plan::Program& program : setup.plan.programs) {
    for (const plan::Kernel& kernel : program.kernels) {
      for (const gpu::GpuModel* model : {&whole, &rest}) times.push_back(model->time(kernel).count());
      times.push_back(whole.launch_cost(kernel).count());
    }
  }
  times.push_back(whole.kernel_gap().count());
  times.push_back(whole.parameters().host_collective.count());
  return times;
}

// One thread's copy of everything, with one figure moved at a time.
class Mover {
 public:
  Mover(const HardwareShelf& shelf, const scenario::Loaded& loaded, const Setup& setup, Duration base, bool fold)
      : shelf_{shelf}, loaded_{loaded}, setup_{setup}, networks_{shelf}, base_{base}, fold_{fold}, kernels_{kernel_times(setup)} {}

  Duration step(const Target& target) {
    const topology::ClusterHardware hardware = setup_.hardware;
    const calibration::Profile profile = setup_.profile.profile;
    const collective::Parameters collectives = setup_.collectives;
    move(setup_, networks_, target);
    const bool of_links = target.place == Place::kNode || target.place == Place::kNic || target.figure.key == "scale_up";
    if (of_links) {
      lay_network(setup_, networks_, loaded_);
    } else {
      setup_.collectives = pick_collectives(networks_, setup_.hardware, setup_.profile);
    }
    const bool same = !of_links && setup_.collectives == collectives && kernel_times(setup_) == kernels_;
    const Duration time = same ? base_ : step_time(setup_, fold_);
    setup_.hardware = hardware;
    setup_.profile.profile = profile;
    networks_.networks = shelf_.networks;
    if (of_links) {
      lay_network(setup_, networks_, loaded_);
    } else {
      setup_.collectives = collectives;
    }
    return time;
  }

 private:
  const HardwareShelf& shelf_;
  const scenario::Loaded& loaded_;
  Setup setup_;
  HardwareShelf networks_;
  Duration base_;
  bool fold_;
  std::vector<std::int64_t> kernels_;
};

}  // namespace

Uncertainty propagate(const HardwareShelf& shelf, const scenario::Loaded& loaded, const Setup& setup, Duration base, const UncertaintyOptions& options) {
  const std::vector<Target> targets = targets_of(shelf, setup);
  std::vector<Duration> steps(targets.size(), base);
  std::vector<std::exception_ptr> errors(targets.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    Mover mover{shelf, loaded, setup, base, options.fold};
    for (std::size_t i = next++; i < targets.size(); i = next++) {
      try {
        steps[i] = mover.step(targets[i]);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> others;
    const std::size_t threads = options.threads > 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
    for (std::size_t i = 1; i < std::min(threads, targets.size()); ++i) others.emplace_back(work);
    work();
  }
  Uncertainty uncertainty{.step_s = 0.0, .figures = targets.size(), .influences = {}};
  double variance = 0.0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (errors[i]) std::rethrow_exception(errors[i]);
    const double change = exact_seconds(steps[i]) - exact_seconds(base);
    if (change == 0.0) continue;
    variance += change * change;
    const ProfileParameter& figure = targets[i].figure;
    uncertainty.influences.push_back({targets[i].name, figure.basis, figure.text, std::abs(moved(figure) - figure.value) / std::abs(figure.value), change});
  }
  uncertainty.step_s = std::sqrt(variance);
  std::stable_sort(uncertainty.influences.begin(), uncertainty.influences.end(), [](const Influence& a, const Influence& b) { return std::abs(a.step_s) > std::abs(b.step_s); });
  return uncertainty;
}

std::string uncertainty_text(const Uncertainty& uncertainty, Duration step) {
  constexpr std::size_t kShown = 4;
  const double step_s = exact_seconds(step);
  const auto list = [&](bool assumed) {
    std::vector<std::string> parts;
    for (const Influence& i : uncertainty.influences) {
      if ((i.basis == topology::Basis::kAssumed) != assumed || parts.size() == kShown) continue;
      const double share = 100.0 * std::abs(i.step_s) / step_s;
      if (share < 0.05) break;
      parts.push_back(fmt::format("{} = {} ({:.1f} %)", i.figure, i.value, share));
    }
    return join(parts, ", ");
  };
  const std::string known = list(false);
  const std::string assumed = list(true);
  std::string text = fmt::format("{:.1f} % of the step, one standard deviation, from {} figures", 100.0 * uncertainty.step_s / step_s, uncertainty.figures);
  if (!assumed.empty()) text += "; assumed ones that matter most: " + assumed;
  if (!known.empty()) text += "; others: " + known;
  return text;
}

}  // namespace stepcast::app
