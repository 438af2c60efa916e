// `stepcast run`: the plan of a scenario on real hardware, one process a worker.
#include <filesystem>
#include <unistd.h>

#include <fmt/format.h>

#include "app/child_process.hpp"
#include "app/commands/commands.hpp"
#include "app/commands/common_options.hpp"
#include "app/forecast_json.hpp"
#include "app/forecast_store.hpp"
#include "app/measured_run.hpp"
#include "executor/common/cpu_limits.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"
#include "sim/base/text.hpp"
#include "sim/plan/plan_file.hpp"
#include "sim/scenario/write.hpp"
#include "sim/trace/perfetto.hpp"

namespace stepcast::app {
namespace {

namespace fs = std::filesystem;
namespace po = boost::program_options;

OptionList run_options() {
  OptionList options;
  add_scenario_options(options);
  add_output_options(options);
  options.add_options()
      ("backend", po::value<std::string>()->value_name("NAME"), "cpu (default) or cuda")
      ("steps", po::value<std::int64_t>()->value_name("N"), "steps that are recorded (default 5)")
      ("warmup", po::value<std::int64_t>()->value_name("N"), "steps before them (default 2)")
      ("threads", po::value<std::int64_t>()->value_name("N"), "cpu: cores of a worker's matrix products (default 1)")
      ("memory", po::value<std::int64_t>()->value_name("BYTES"), "end the run where a worker's buffers would hold more")
      ("shrink", po::value<std::int64_t>()->value_name("N"), "sides of matrices divided by N, bytes by its square: a big plan on a small machine")
      ("train", "a small model that learns instead of random data: prints the loss of every step")
      ("timeout", po::value<std::int64_t>()->value_name("S"), "give up where a step takes longer (default 60 s)")
      ("launcher", po::value<std::string>()->value_name("TEXT"), "what starts the workers, before `-n N WORKER` (default: mpirun --oversubscribe)")
      ("records", po::value<std::string>()->value_name("FOLDER"), "keep the plan and the workers' records there")
      ("trace", po::value<std::string>()->value_name("FILE"), "write the median step's timeline for ui.perfetto.dev")
      ("db", po::value<std::string>()->value_name("FILE"), "append the measurement to a SQLite store");
  return options;
}

std::int64_t at_least(const Invocation& invocation, const char* option, std::int64_t usual, std::int64_t least) {
  const std::int64_t value = invocation.integer(option).value_or(usual);
  if (value < least) {
    throw UserError(Diagnostic{.path = fmt::format("--{}", option), .problem = "too small", .expected = fmt::format("{} or more", least), .got = std::to_string(value)});
  }
  return value;
}

// The worker program beside this one.
std::string worker_of(const std::string& backend) {
  if (backend != "cpu" && backend != "cuda") {
    throw UserError(Diagnostic{.path = "--backend", .problem = "unknown '" + backend + "'", .expected = "cpu or cuda"});
  }
  const fs::path worker = own_executable().parent_path() / ("stepcast-" + backend);
  if (!fs::exists(worker)) {
    throw UserError(Diagnostic{.path = "--backend", .problem = fmt::format("{} is not built here", worker.filename().string()),
                               .hint = backend == "cpu" ? "install an MPI library (libopenmpi-dev, openmpi-bin) and build again" : "install the CUDA toolkit and NCCL and build again"});
  }
  return worker.string();
}

// Removed at the end unless kept.
class RecordFolder {
 public:
  explicit RecordFolder(const std::optional<std::string>& wanted) : keep_{wanted.has_value()} {
    if (wanted) {
      path_ = *wanted;
      std::error_code error;
      fs::create_directories(path_, error);
      if (error) throw SystemError(fmt::format("{}: {}", path_.string(), error.message()));
      return;
    }
    std::string name = (fs::temp_directory_path() / "stepcast-run-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw SystemError(fmt::format("{}: no temporary folder can be made", name));
    path_ = name;
  }
  ~RecordFolder() {
    std::error_code ignored;
    if (!keep_) fs::remove_all(path_, ignored);
  }
  RecordFolder(const RecordFolder&) = delete;
  RecordFolder& operator=(const RecordFolder&) = delete;
  void keep() { keep_ = true; }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  bool keep_;
  fs::path path_;
};

ChildCall launch(const Invocation& invocation, const std::string& worker, const std::string& plan, const std::string& records, std::int32_t workers) {
  const std::string launcher = invocation.text("launcher").value_or("mpirun --oversubscribe");
  ChildCall call;
  for (const std::string& word : split(launcher, ' ')) {
    if (!word.empty()) call.words.push_back(word);
  }
  if (call.words.empty()) throw UserError(Diagnostic{.path = "--launcher", .problem = "empty"});
  if (call.words.front().find('/') == std::string::npos && !on_path(call.words.front())) {
    throw UserError(Diagnostic{.path = "--launcher", .problem = fmt::format("{} is not on the PATH", call.words.front()),
                               .hint = "Debian and Ubuntu have it in openmpi-bin"});
  }
  const auto number = [&](const char* option, std::int64_t usual, std::int64_t least) { return std::to_string(at_least(invocation, option, usual, least)); };
  for (const std::string& word : {std::string{"-n"}, std::to_string(workers), worker, plan, std::string{"--records"}, records, std::string{"--steps"}, number("steps", 5, 1),
                                  std::string{"--warmup"}, number("warmup", 2, 0), std::string{"--threads"}, number("threads", 1, 1), std::string{"--shrink"},
                                  number("shrink", 1, 1), std::string{"--timeout"}, number("timeout", 60, 1)}) {
    call.words.push_back(word);
  }
  if (invocation.has("memory")) {
    call.words.emplace_back("--memory");
    call.words.push_back(number("memory", 1, 1));
  }
  if (invocation.has("train")) call.words.emplace_back("--train");
  // Containers and namespaces run as root; Open MPI wants to be told that this is meant. Workers may be more than cores.
  if (::geteuid() == 0) call.environment = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}};
  call.environment.emplace_back("OMPI_MCA_mpi_yield_when_idle", "1");
  return call;
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
  const ChildCall call = launch(invocation, worker, plan, records, setup.plan.world_size());
  const int status = [&] {
    Progress progress{invocation.has("quiet")};
    progress.show(fmt::format("running {} workers", setup.plan.world_size()));
    return run_child(call);
  }();
  if (status == 2) return Status::kBadInput;
  if (status != 0) {
    folder.keep();
    throw SystemError(fmt::format("the run ended with status {}; what was recorded is kept in {}", status, folder.path().string()));
  }
  std::vector<executor::Records> all;
  for (std::int32_t r = 0; r < setup.plan.world_size(); ++r) all.push_back(executor::read_records(fmt::format("{}.{}.records", records, r)));
  const MeasuredRun measured = measured_run(setup.plan, backend, all);
  if (const auto file = invocation.text("db")) {
    trace::append_run(*file, stored_measurement(measured, setup.plan, scenario::print_effective(loaded.scenario),
                                                static_cast<std::uint64_t>(loaded.scenario.seed), utc_now()));
  }
  if (const auto file = invocation.text("trace")) trace::save_perfetto(measured.recording, *file);
  write_json(invocation, json_text(measured_json(measured, setup.plan)));
  print_text(invocation, measured_text(measured, setup.plan, session.terminal));
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
