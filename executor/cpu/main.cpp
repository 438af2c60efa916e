// stepcast-cpu: plays a plan on CPU cores, one MPI process a worker. Exit status: 0 done, 2 bad input, 3 the system failed.
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <optional>
#include <thread>

#include "executor/common/cpu_limits.hpp"
#include "executor/common/fewer_workers.hpp"
#include "executor/common/machine_facts.hpp"
#include "executor/common/measure.hpp"
#include "executor/common/model_payload.hpp"
#include "executor/common/shrink.hpp"
#include "executor/common/steps.hpp"
#include "executor/common/watch.hpp"
#include "executor/cpu/cpu_device.hpp"
#include "executor/cpu/cpu_math.hpp"
#include "executor/cpu/gemm.hpp"
#include "executor/cpu/messenger_together.hpp"
#include "executor/cpu/mpi_messenger.hpp"
#include "executor/cpu/synthetic_payload.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"
#include "sim/plan/check.hpp"
#include "sim/plan/plan_file.hpp"

using namespace stepcast;
using namespace stepcast::executor;

namespace {

constexpr const char* kName = "stepcast-cpu";

void run(const MpiSession& mpi, const WorkerOptions& options) {
  const std::string text = read_file(options.plan);
  const plan::Plan whole = shrink(plan::from_file_text(text, options.plan), options.shrink);
  const FewerWorkers fewer = options.fewer ? on_fewer(whole, static_cast<std::int32_t>(mpi.size())) : FewerWorkers{whole, {}};
  const plan::Plan& plan = fewer.plan;
  plan::require_valid(plan, options.plan);
  require_cpu_can_play(plan, options.plan);
  if (static_cast<std::uint32_t>(plan.world_size()) != mpi.size()) {
    throw UserError(Diagnostic{.where = {options.plan, 0, 0}, .problem = "another number of workers than processes",
                               .expected = std::to_string(plan.world_size()) + " processes (mpirun -n)", .got = std::to_string(mpi.size())});
  }
  set_threads(static_cast<int>(options.threads));
  const RankId rank{mpi.rank()};
  const plan::Program& program = plan.program(rank);
  MpiMessenger messenger{plan.groups.size() + 1};
  const auto seed = static_cast<std::uint64_t>(options.seed);
  CpuMath math;
  const std::unique_ptr<Payload> payload = options.train ? std::unique_ptr<Payload>{std::make_unique<ModelPayload>(plan, rank, options.plan, math, seed)}
                                                         : std::make_unique<SyntheticPayload>(program, seed + mpi.rank());
  CpuDevice device{plan, rank, messenger, *payload, options.memory};
  RecordWriter records{options.records + '.' + std::to_string(mpi.rank()) + ".records"};
  std::vector<std::pair<std::string, std::string>> facts{{"worker", kName}, {"rank", std::to_string(mpi.rank())}, {"workers", std::to_string(mpi.size())},
                                                         {"plan", text_hash(text)}, {"mpi", mpi.library()}, {"collectives", "ring"},
                                                         {"threads", std::to_string(options.threads)}, {"data", options.train ? "a model that learns" : "random"}, {"shrink", std::to_string(options.shrink)}};
  for (auto& fact : machine_facts()) facts.push_back(std::move(fact));
  if (!fewer.note.empty()) facts.emplace_back("fewer", fewer.note);
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
  for (const std::string& word : arguments) {
    if (word == "-h" || word == "--help") {
      std::cout << worker_usage(kName);
      return 0;
    }
  }
  int status = 3;
  std::optional<MpiSession> mpi;
  try {
    mpi.emplace();
    run(*mpi, parse_worker_options(kName, arguments));
    return 0;
  } catch (const Stopped&) {
    std::cerr << kName << ": another worker failed\n";
  } catch (const UserError& error) {
    if (!mpi || mpi->rank() == 0) std::cerr << error.what() << '\n';
    status = 2;
  } catch (const std::exception& error) {
    std::cerr << kName << ": " << (mpi ? "rank " + std::to_string(mpi->rank()) + ": " : "") << error.what() << '\n';
  }
  if (mpi) {
    std::this_thread::sleep_for(std::chrono::milliseconds{200});  // so that what others say is out
    mpi->abort(status);
  }
  return status;
}
