// `stepcast import KIND FILE`: reads what other tools wrote and says what was understood.
#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/cli/terminal.hpp"
#include "app/commands/commands.hpp"
#include "app/commands/common_options.hpp"
#include "app/commands/import_measurements.hpp"
#include "app/commands/import_topology.hpp"
#include "app/commands/import_training.hpp"
#include "app/forecast/forecast_json.hpp"
#include "app/measure/nccl_store.hpp"
#include "calibration/byte_stream.hpp"
#include "calibration/nccl_tests_log.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"
#include "sim/base/plain_text.hpp"
#include "sim/base/text.hpp"

namespace stepcast::app {
namespace {

namespace cal = calibration;

const std::vector<std::string>& kinds() {
  static const std::vector<std::string> kinds = [] {
    std::vector<std::string> all = topology_kinds();
    const std::vector<std::string> training = training_kinds();
    all.insert(all.end(), training.begin(), training.end());
    const std::vector<std::string> measured = measurement_kinds();
    all.insert(all.end(), measured.begin(), measured.end());
    all.emplace_back("nccl-tests");
    return all;
  }();
  return kinds;
}

std::string or_unknown(const std::string& text) { return text.empty() ? "not stated" : text; }

std::string gpus_text(const cal::NcclLog& log, std::size_t run) {
  const auto ranks = cal::ranks_of(log, run);
  if (!ranks) return "not stated";
  std::set<std::string> hosts;
  std::set<std::string> names;
  for (const cal::NcclDevice& device : log.runs[run].devices) {
    hosts.insert(device.host);
    if (!device.name.empty()) names.insert(device.name);
  }
  std::string text = std::to_string(ranks->ranks) + (ranks->by_ratio ? " (by busbw over algbw)" : "");
  if (!names.empty()) text += ", " + join(std::vector<std::string>{names.begin(), names.end()}, ", ");
  if (!hosts.empty()) text += fmt::format(", {} host{} listed", hosts.size(), hosts.size() == 1 ? "" : "s");
  return text;
}

std::string to_text(const cal::NcclLog& log) {
  std::string text = fmt::format("nccl-tests {}, NCCL {}\n", or_unknown(log.tests_version), or_unknown(log.nccl_version));
  for (std::size_t r = 0; r < log.runs.size(); ++r) {
    const cal::NcclRun& run = log.runs[r];
    std::size_t rows = 0;
    std::int64_t least = 0;
    std::int64_t most = 0;
    for (const cal::NcclRow& row : log.rows) {
      if (row.run != r) continue;
      least = rows == 0 ? row.size : std::min(least, row.size);
      most = std::max(most, row.size);
      ++rows;
    }
    text += fmt::format("run {}: {} rows", r + 1, rows);
    if (rows > 0) text += fmt::format(", {} to {} B", least, most);
    text += fmt::format("\n  collective  {}\n  GPUs        {}\n  command     {}\n  options     {}\n", or_unknown(run.collective),
                        gpus_text(log, r), or_unknown(run.command), or_unknown(run.options));
  }
  for (const cal::NcclRemark& remark : log.remarks) text += fmt::format("line {} not understood: {}\n", remark.line, remark.text);
  return text;
}

nlohmann::ordered_json timing_json(const cal::NcclTiming& timing) {
  return {{"time", timing.time}, {"algbw", timing.algbw}, {"busbw", timing.busbw}, {"wrong", timing.wrong}};
}

nlohmann::ordered_json to_json(const cal::NcclLog& log) {
  const auto or_null = [](const std::string& text) { return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text); };
  nlohmann::ordered_json json{{"nccl_tests_version", or_null(log.tests_version)}, {"nccl_version", or_null(log.nccl_version)}};
  json["runs"] = nlohmann::ordered_json::array();
  json["rows"] = nlohmann::ordered_json::array();
  json["not_understood"] = nlohmann::ordered_json::array();
  for (std::size_t r = 0; r < log.runs.size(); ++r) {
    const auto ranks = cal::ranks_of(log, r);
    json["runs"].push_back({{"collective", or_null(log.runs[r].collective)}, {"command", or_null(log.runs[r].command)},
                            {"options", or_null(log.runs[r].options)},
                            {"ranks", ranks ? nlohmann::ordered_json(ranks->ranks) : nlohmann::ordered_json(nullptr)}});
  }
  for (const cal::NcclRow& row : log.rows) {
    json["rows"].push_back({{"run", row.run}, {"line", row.line}, {"size", row.size}, {"count", row.count}, {"type", row.dtype},
                            {"redop", or_null(row.redop)}, {"root", or_null(row.root)},
                            {"unit", row.unit == cal::TimeUnit::kMilliseconds ? "ms" : "us"},
                            {"out_of_place", timing_json(row.out_of_place)},
                            {"in_place", row.in_place ? timing_json(*row.in_place) : nlohmann::ordered_json(nullptr)}});
  }
  for (const cal::NcclRemark& remark : log.remarks) json["not_understood"].push_back({{"line", remark.line}, {"why", remark.text}});
  return json;
}

OptionList import_options() {
  OptionList options;
  add_topology_import_options(options);
  options.add_options()("db", boost::program_options::value<std::string>()->value_name("FILE"), "measurements: append them to this database of runs");
  add_measurement_import_options(options);
  add_training_import_options(options);
  add_output_options(options);
  return options;
}

Status run_import(const Invocation& invocation, Session& session) {
  const std::string& kind = invocation.operands[0];
  if (std::find(kinds().begin(), kinds().end(), kind) == kinds().end()) {
    const auto near = nearest_word(kind, kinds());
    throw UserError(Diagnostic{.path = "stepcast import", .problem = "unknown kind '" + kind + "'", .expected = one_of(kinds()),
                               .hint = near ? "did you mean '" + *near + "'?" : ""});
  }
  const std::string& file = invocation.operands[1];
  const std::vector<std::string> measured = measurement_kinds();
  const bool measurement = std::find(measured.begin(), measured.end(), kind) != measured.end();
  if (kind != "nccl-tests" && !measurement && invocation.text("db")) {
    throw UserError(Diagnostic{.path = "--db", .problem = "descriptions of machines and configurations are no runs", .expected = "--db with kineto, nccl-tests, nsys or nvidia-smi"});
  }
  if (kind != "nvidia-smi" && (invocation.text("columns") || invocation.text("interval"))) {
    throw UserError(Diagnostic{.path = invocation.text("columns") ? "--columns" : "--interval", .problem = "is for nvidia-smi", .got = kind});
  }
  if (measurement) return import_measurement(kind, file, invocation);
  const std::vector<std::string> training = training_kinds();
  if (std::find(training.begin(), training.end(), kind) != training.end()) return import_training_file(kind, file, invocation, session);
  if (kind != "nccl-tests") return import_topology(kind, file, invocation, session);
  const std::string text = read_file(file);
  if (const std::optional<NoText> other = other_form(text)) throw UserError(Diagnostic{.where = {file, 0, 0}, .problem = other->problem, .expected = "a log as text, or the JSON of -J", .hint = other->hint});
  const cal::NcclLog log = cal::read_nccl_log(text, file);
  std::string stored;
  if (const auto database = invocation.text("db")) {
    const std::string fingerprint = cal::file_fingerprint(file);
    nlohmann::ordered_json json = to_json(log);
    json["fingerprint"] = fingerprint;
    stored = stored_text(trace::Store{*database, trace::Store::Mode::kAppend}.append_file(stored_log(log, file, std::move(json)), fingerprint), *database);
  }
  write_json(invocation, json_text(to_json(log)));
  print_text(invocation, to_text(log) + stored);
  return Status::kDone;
}

}  // namespace

Command import_command() {
  return {.name = "import",
          .summary = "reads what other tools wrote: profiles, logs, descriptions of machines and fabrics, training configurations",
          .operands = {.usage = "KIND FILE", .min = 2, .max = 2},
          .details = "KIND is a measurement: kineto (a trace of the PyTorch profiler, plain or gzip), nsys (an SQLite export of Nsight Systems, or a file of "
                     "nvprof), nvidia-smi (--query-gpu ... --format=csv, or dmon). Prints what was found, what was skipped and why; with --db, stores the file "
                     "as one measured run, once. "
                     "Or nccl-tests: a log of nccl-tests or rccl-tests, as printed, labelled by a launcher, or cut. Prints what was "
                     "read and which lines were not understood; with --db, stores the rows for `stepcast calibrate`. "
                     "Or a description: nccl-topo (NCCL's topology XML), nvidia-smi-topo (`nvidia-smi topo -m`), ibnetdiscover, slurm-topology "
                     "(topology.conf or .yaml). With -o, these become a file that `stepcast topology` and scenarios read; notes say what "
                     "was left out or taken from elsewhere. "
                     "Or a training configuration: deepspeed (ds_config.json), accelerate (YAML), megatron (script, printed arguments or YAML), "
                     "torchtitan (TOML). It becomes a scenario: every key is listed as understood, ignored or not expressed, and what the "
                     "file leaves open is assumed and said, or given by --set. Exits 1 when that scenario is refused as it stands.",
          .options = import_options(),
          .run = run_import};
}

}  // namespace stepcast::app
