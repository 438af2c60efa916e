#include "app/network/collective_machine.hpp"

#include "app/scenario/communication_choice.hpp"
#include "app/scenario/routing_choice.hpp"
#include "app/scenario/transport_choice.hpp"
#include "calibration/gpu_parameters.hpp"
#include "sim/run/groups.hpp"

namespace stepcast::app {
namespace {

// Where no profile says: a kernel launch of the CUDA runtime, and a fraction of it for an entry of a group.
constexpr Duration kLaunch = Duration::microseconds(5);
constexpr Duration kIssue = Duration::nanoseconds(300);

}  // namespace

CollectiveMachine::CollectiveMachine(const HardwareShelf& shelf, const scenario::Loaded& loaded)
    : hardware_{pick_hardware(shelf, loaded)},
      fabric_{lay_fabric(hardware_, loaded)},
      router_{fabric_},
      gpu_{calibration::make_parameters(hardware_.gpu, pick_profile(shelf, loaded, hardware_.gpu).profile)} {
  const calibration::ChosenProfile profile = pick_profile(shelf, loaded, hardware_.gpu);
  const auto& local = profile.profile.collectives;
  launch_ = local ? local->launch.value : kLaunch;
  issue_ = local ? local->issue.value : kIssue;
  const scenario::Communication& communication = loaded.scenario.communication;
  machine_ = std::make_unique<run::Machine>(run::Machine{
      .fabric = fabric_,
      .router = router_,
      .gpu = gpu_,
      .collectives = with_choices(pick_collectives(shelf, hardware_, profile), communication),
      .forced = forced_choices(communication),
      .communicator_bytes = Bytes{0},
      .communication_launch = launch_,
      .paths = pick_paths(loaded, fabric_),
      .transports = pick_transports(shelf, loaded, hardware_),
      .side_networks = pick_side_networks(shelf, hardware_, profile)});
}

run::Machine CollectiveMachine::with(const collective::Parameters& parameters) const {
  run::Machine machine = *machine_;
  machine.collectives = parameters;
  return machine;
}

collective::Layout CollectiveMachine::layout(std::int32_t ranks) const {
  const auto count = static_cast<std::size_t>(ranks);
  const std::size_t local = fabric_.gpus_per_domain();
  std::vector<RankId> members;
  for (std::uint32_t r = 0; r < count; ++r) members.emplace_back(r);
  return {.ranks = count, .hosts = (count + local - 1) / local, .nvlink = run::hosts_have_nvlink(*machine_),
          .nvswitch = run::hosts_have_nvswitch(fabric_), .nics = run::nics_beside(members, fabric_, 0)};
}

}  // namespace stepcast::app
