// stepcast-cpu: plays a plan on CPU cores, one MPI process a worker. Exit status: 0 done, 2 bad input, 3 the system failed.
#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include "executor/common/cpu_limits.hpp"
#include "executor/common/machine_facts.hpp"
#include "executor/common/measure.hpp"
#include "executor/common/model_payload.hpp"
#include "executor/common/steps.hpp"
#include "executor/common/watch.hpp"
#include "executor/common/worker_program.hpp"
#include "executor/cpu/cpu_device.hpp"
#include "executor/cpu/cpu_math.hpp"
#include "executor/cpu/gemm.hpp"
#include "executor/cpu/messenger_together.hpp"
#include "executor/cpu/mpi_messenger.hpp"
#include "executor/cpu/synthetic_payload.hpp"
#include "sim/plan/check.hpp"

using namespace stepcast;
using namespace stepcast::executor;

namespace {

constexpr const char* kName = "stepcast-cpu";

void run(const MpiSession& mpi, const WorkerOptions& options) {
  const PlayedPlan played = read_played_plan(options, mpi.size());
  const plan::Plan& plan = played.plan;
  plan::require_valid(plan, options.plan);
  require_cpu_can_play(plan, options.plan);
  set_threads(static_cast<int>(options.threads));
  const RankId rank{mpi.rank()};
  const plan::Program& program = plan.program(rank);
  MpiMessenger messenger{plan.groups.size() + 1};
  const auto seed = static_cast<std::uint64_t>(options.seed);
  CpuMath math;
  const std::unique_ptr<Payload> payload = options.train ? std::unique_ptr<Payload>{std::make_unique<ModelPayload>(plan, rank, options.plan, math, seed)}
                                                         : std::make_unique<SyntheticPayload>(program, seed + mpi.rank(), std::size_t{16} << 20U, static_cast<int>(options.threads));
  CpuDevice device{plan, rank, messenger, *payload, options.memory};
  RecordWriter records{options.records + '.' + std::to_string(mpi.rank()) + ".records"};
  auto facts = facts_of_run(kName, mpi.rank(), mpi.size(), options, played);
  facts.insert(facts.end(), {{"mpi", mpi.library()}, {"collectives", "ring"}, {"threads", std::to_string(options.threads)}});
  records.facts(facts);
  const std::int64_t offset = mpi.clock_offset_ns();
  MessengerTogether together{messenger, rank, mpi.size()};
  if (options.measure) {
    measure_points(program, device, together, {.budget_s = options.point_budget_s}, offset, [] { return Readings{{"clock_mhz", clock_mhz()}}; }, records);
  } else {
    Watch watch{std::string{kName} + ": rank " + std::to_string(mpi.rank()), std::chrono::seconds{options.timeout_s}, [&] { return device.standing(); },
                [&] { mpi.abort(3); }};
    run_steps(program, device, *payload, together, options, offset, records, [&] { watch.step_ended(); });
  }
  records.facts({{"peak_memory_bytes", std::to_string(device.peak_memory().count())}});
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments{argv + 1, argv + argc};
  std::optional<MpiSession> mpi;
  const auto work = [&] {
    mpi.emplace();
    run(*mpi, parse_worker_options(kName, arguments));
  };
  const int status = run_worker(kName, arguments, work, [&] { return mpi ? std::optional{mpi->rank()} : std::nullopt; });
  if (status != 0 && mpi) {
    std::this_thread::sleep_for(std::chrono::milliseconds{200});  // so that what others say is out
    mpi->abort(status);
  }
  return status;
}
