#include "app/measure/worker_launch.hpp"

#include <unistd.h>

#include <string_view>

#include <fmt/format.h>

#include "app/scenario/data_files.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"
#include "sim/base/text.hpp"

namespace stepcast::app {

namespace fs = std::filesystem;

namespace {

// The workers that this build has targets of (app/CMakeLists.txt).
constexpr std::string_view kTargets = STEPCAST_WORKERS;

UserError not_here(const fs::path& worker, const std::string& backend) {
  const std::string name = worker.filename().string();
  const fs::path build = worker.parent_path().parent_path();
  const bool cpu = backend == "cpu";
  Diagnostic what{.path = "--backend"};
  if (!fs::exists(build / "CMakeCache.txt")) {
    what.problem = fmt::format("{} is not beside {}", name, own_executable().string());
    what.hint = fmt::format("build it from a checkout (cmake --build BUILD --target {}) and copy it to {}", name, worker.parent_path().string());
  } else if (kTargets.find(name) != std::string_view::npos) {
    what.problem = fmt::format("{} is not built yet", name);
    what.hint = fmt::format("cmake --build {} --target {}", build.string(), name);
  } else {
    what.problem = fmt::format("{} is not built: {} was not found when {} was configured", name, cpu ? "MPI" : "CUDA 12 or later, cuBLASLt or NCCL", build.string());
    what.hint = fmt::format("install {}, then: cmake {} && cmake --build {} --target {}", cpu ? "libopenmpi-dev and openmpi-bin" : "the CUDA toolkit and NCCL", build.string(), build.string(), name);
  }
  return UserError(what);
}

}  // namespace

std::string worker_of(const std::string& backend) {
  if (backend != "cpu" && backend != "cuda") {
    throw UserError(Diagnostic{.path = "--backend", .problem = "unknown '" + backend + "'", .expected = "cpu or cuda"});
  }
  const fs::path worker = own_executable().parent_path() / ("stepcast-" + backend);
  if (!fs::exists(worker)) throw not_here(worker, backend);
  return worker.string();
}

ChildCall worker_call(const Invocation& invocation, std::int32_t workers, const std::string& worker, const std::vector<std::string>& arguments) {
  ChildCall call;
  // mpirun binds each rank to a core, which steadies one thread and strangles several.
  const bool several = invocation.integer("threads").value_or(1) > 1;
  const std::string usual = several ? "mpirun --quiet --oversubscribe --bind-to none" : "mpirun --quiet --oversubscribe";
  for (const std::string& word : split(invocation.text("launcher").value_or(usual), ' ')) {
    if (!word.empty()) call.words.push_back(word);
  }
  if (call.words.empty()) throw UserError(Diagnostic{.path = "--launcher", .problem = "empty"});
  if (call.words.front().find('/') == std::string::npos && !on_path(call.words.front())) {
    throw UserError(Diagnostic{.path = "--launcher", .problem = fmt::format("{} is not on the PATH", call.words.front()),
                               .hint = "Debian and Ubuntu have mpirun in openmpi-bin"});
  }
  call.words.insert(call.words.end(), {"-n", std::to_string(workers), worker});
  call.words.insert(call.words.end(), arguments.begin(), arguments.end());
  // Containers and namespaces run as root; Open MPI wants to be told that this is meant.
  if (::geteuid() == 0) call.environment = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}};
  // Workers sleep while they wait (mpi_messenger.cpp); the library's own way, sched_yield, costs a time slice on a busy core.
  call.environment.emplace_back("OMPI_MCA_mpi_yield_when_idle", "0");
  return call;
}

RecordFolder::RecordFolder(const std::optional<std::string>& wanted) : keep_{wanted.has_value()} {
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

RecordFolder::~RecordFolder() {
  std::error_code ignored;
  if (!keep_) fs::remove_all(path_, ignored);
}

std::int64_t at_least(const Invocation& invocation, const char* option, std::int64_t usual, std::int64_t least) {
  const std::int64_t value = invocation.integer(option).value_or(usual);
  if (value < least) {
    throw UserError(Diagnostic{.path = fmt::format("--{}", option), .problem = "too small", .expected = fmt::format("{} or more", least), .got = std::to_string(value)});
  }
  return value;
}

}  // namespace stepcast::app
