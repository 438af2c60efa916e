// `stepcast run`: the plan of a scenario on real hardware, one process a worker.
#include <algorithm>

#include <fmt/format.h>

#include "app/commands/commands.hpp"
#include "app/commands/common_options.hpp"
#include "app/forecast/forecast_json.hpp"
#include "app/forecast/forecast_store.hpp"
#include "app/measure/measured_run.hpp"
#include "app/measure/worker_launch.hpp"
#include "executor/common/cpu_limits.hpp"
#include "executor/common/fewer_workers.hpp"
#include "executor/common/shrink.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"
#include "sim/plan/plan_file.hpp"
#include "sim/scenario/write.hpp"
#include "sim/trace/perfetto.hpp"

namespace stepcast::app {
namespace {

namespace po = boost::program_options;

OptionList run_options() {
  OptionList options;
  add_scenario_options(options);
  add_output_options(options);
  options.add_options()
      ("backend", po::value<std::string>()->value_name("NAME"), "cpu (default) or cuda")
      ("steps", po::value<std::int64_t>()->value_name("N"), "steps that are recorded (default 5)")
      ("warmup", po::value<std::int64_t>()->value_name("N"), "steps before them (default 2)")
      ("threads", po::value<std::int64_t>()->value_name("N"), "cores of a worker's host Adam and, on CPUs, matrix products (default 1)")
      ("memory", po::value<std::int64_t>()->value_name("BYTES"), "end the run where a worker's buffers would hold more")
      ("processes", po::value<std::int64_t>()->value_name("N"), "no more than N: of a larger plan its distinct programs, one worker each")
      ("shrink", po::value<std::int64_t>()->value_name("N"), "sides of matrices divided by N, bytes by its square: a big plan on a small machine")
      ("train", "a small model that learns instead of random data: prints the loss of every step")
      ("share-gpu", "cuda: several workers on one GPU, talking over sockets as hosts do")
      ("timeout", po::value<std::int64_t>()->value_name("S"), "give up where a step takes longer (default 60 s)")
      ("launcher", po::value<std::string>()->value_name("TEXT"), "what starts the workers, before `-n N WORKER` (default: mpirun --quiet --oversubscribe)")
      ("records", po::value<std::string>()->value_name("FOLDER"), "keep the plan and the workers' records there")
      ("trace", po::value<std::string>()->value_name("FILE"), "write the median step's timeline for ui.perfetto.dev")
      ("db", po::value<std::string>()->value_name("FILE"), "append the measurement to a SQLite store");
  return options;
}

std::vector<std::string> worker_arguments(const Invocation& invocation, const std::string& plan, const std::string& records) {
  std::vector<std::string> arguments{plan, "--records", records};
  const auto add = [&](const char* option, std::int64_t usual, std::int64_t least) {
    arguments.push_back(fmt::format("--{}", option));
    arguments.push_back(std::to_string(at_least(invocation, option, usual, least)));
  };
  add("steps", 5, 1);
  add("warmup", 2, 0);
  add("threads", 1, 1);
  add("shrink", 1, 1);
  add("timeout", 60, 1);
  if (invocation.has("memory")) add("memory", 1, 1);
  if (invocation.has("processes")) arguments.emplace_back("--fewer");
  if (invocation.has("train")) arguments.emplace_back("--train");
  if (invocation.has("share-gpu")) arguments.emplace_back("--share-gpu");
  return arguments;
}

Status run(const Invocation& invocation, Session& session) {
  const std::string backend = invocation.text("backend").value_or("cpu");
  const std::string worker = worker_of(backend);
  const scenario::Loaded loaded = scenario::load_scenario(invocation.operands[0], assignments(invocation));
  const Setup setup = prepare(load_shelf(session.data), loaded);
  if (backend == "cpu") executor::require_cpu_can_play(setup.plan, invocation.operands[0]);
  RecordFolder folder{invocation.text("records")};
  const std::string plan = (folder.path() / "run.plan").string();
  const std::string records = (folder.path() / "run").string();
  plan::save_plan(setup.plan, plan);
  const auto processes = static_cast<std::int32_t>(std::min<std::int64_t>(setup.plan.world_size(), at_least(invocation, "processes", setup.plan.world_size(), 1)));
  if (const std::int64_t factor = at_least(invocation, "shrink", 1, 1); factor > executor::kMostShrink) {
    throw UserError(Diagnostic{.path = "--shrink", .problem = "too large", .expected = fmt::format("1 to {}", executor::kMostShrink), .got = std::to_string(factor)});
  }
  const executor::FewerWorkers played = executor::on_fewer(setup.plan, processes);
  const std::int32_t workers = played.plan.world_size();
  const ChildCall call = worker_call(invocation, workers, worker, worker_arguments(invocation, plan, records));
  const int status = [&] {
    Progress progress{invocation.has("quiet")};
    progress.show(fmt::format("running {} workers", workers));
    return Child{call}.wait();
  }();
  if (status == 2) return Status::kBadInput;
  if (status != 0) {
    folder.keep();
    throw SystemError(fmt::format("the run ended with status {}; what was recorded is kept in {}", status, folder.path().string()));
  }
  std::vector<executor::Records> all;
  for (std::int32_t r = 0; r < workers; ++r) all.push_back(executor::read_records(fmt::format("{}.{}.records", records, r)));
  const MeasuredRun measured = measured_run(played.plan, backend, all);
  if (const auto file = invocation.text("db")) {
    trace::append_run(*file, stored_measurement(measured, played.plan, scenario::print_effective(loaded.scenario),
                                                static_cast<std::uint64_t>(loaded.scenario.seed), utc_now()));
  }
  if (const auto file = invocation.text("trace")) trace::save_perfetto(measured.recording, *file);
  write_json(invocation, json_text(measured_json(measured, played.plan)));
  print_text(invocation, measured_text(measured, played.plan, session.terminal));
  return Status::kDone;
}

}  // namespace

Command run_command() {
  return {.name = "run",
          .summary = "play the plan of a scenario on real hardware",
          .operands = {.usage = "SCENARIO.yaml", .min = 1, .max = 1},
          .details = "Every worker is a process: CPU cores over MPI, or GPUs over NCCL. The same plan that `simulate` forecasts is played "
                     "instruction by instruction, on random data, and timed. Prints the median step, where its time went, and stores all of it.",
          .options = run_options(),
          .run = run};
}

}  // namespace stepcast::app
