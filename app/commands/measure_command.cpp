// `stepcast measure`: micro-benchmarks of the machine, into the store that `calibrate` fits.
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <set>
#include <thread>

#include <unistd.h>

#include <fmt/format.h>

#include "app/commands/commands.hpp"
#include "app/commands/common_options.hpp"
#include "app/forecast/forecast_json.hpp"
#include "app/forecast/forecast_store.hpp"
#include "app/measure/gpu_clocks.hpp"
#include "app/measure/measure_points.hpp"
#include "app/measure/measured_point.hpp"
#include "app/measure/worker_launch.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"
#include "sim/base/text.hpp"
#include "sim/plan/plan_file.hpp"

namespace stepcast::app {
namespace {

namespace po = boost::program_options;

OptionList measure_options() {
  OptionList options;
  add_output_options(options);
  options.add_options()
      ("backend", po::value<std::string>()->value_name("NAME"), "cpu (default) or cuda")
      ("db", po::value<std::string>()->value_name("FILE"), "append each point to a SQLite store; points that it has are not measured again")
      ("quick", "few points, short ones: under two minutes")
      ("workers", po::value<std::string>()->value_name("LIST"), "numbers of workers (default: 1, 2 and all cores, or all GPUs)")
      ("clocks", po::value<std::string>()->value_name("LIST"), "cuda: lock the GPU's clock at each of these MHz in turn and measure long kernels again; it is set free afterwards "
                                                               "(needs the right to; without this option nothing is ever set)")
      ("share-gpu", "cuda: several workers on one GPU, talking over sockets as hosts do")
      ("machine", po::value<std::string>()->value_name("NAME"), "what the store calls this machine (default: its host name); e.g. for an emulated cluster on it")
      ("launcher", po::value<std::string>()->value_name("TEXT"), "what starts the workers, before `-n N WORKER` (default: mpirun --quiet --oversubscribe)")
      ("records", po::value<std::string>()->value_name("FOLDER"), "keep plans and the workers' records there");
  return options;
}

// Whole numbers from `least` to `most`, with commas between.
std::set<std::int32_t> number_list(const char* option, const std::string& list, double least, double most, const char* example) {
  std::set<std::int32_t> numbers;
  for (const std::string& word : split(list, ',')) {
    const auto number = parse_number(word);
    if (!number || *number < least || *number > most || *number != std::floor(*number)) {
      throw UserError(Diagnostic{.path = option, .problem = "not understood", .expected = fmt::format("whole numbers from {:.0f} to {:.0f} with commas between, e.g. {}", least, most, example), .got = list});
    }
    numbers.insert(static_cast<std::int32_t>(*number));
  }
  return numbers;
}

std::set<std::int32_t> worker_counts(const Invocation& invocation, const std::string& backend) {
  if (const auto list = invocation.text("workers")) return number_list("--workers", *list, 1, 1024, "1,2,4");
  const auto most = backend == "cuda" ? std::max(1, gpus_here()) : static_cast<std::int32_t>(std::max(1U, std::thread::hardware_concurrency()));
  return {1, std::min(2, most), most};
}

std::set<std::int32_t> clocks_of(const Invocation& invocation, const std::string& backend) {
  const auto list = invocation.text("clocks");
  if (!list) return {};
  if (backend != "cuda") throw UserError(Diagnostic{.path = "--clocks", .problem = "only GPUs' clocks can be locked", .expected = "--backend cuda"});
  return number_list("--clocks", *list, 100, 10000, "900,1200,1500");
}

std::string machine_name() {
  std::string name(256, '\0');
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string{name.c_str()} : "unknown";
}

// Records that exist so far; a worker that has not begun has none.
std::vector<executor::Records> read_all(const std::string& records, std::int32_t workers) {
  std::vector<executor::Records> all;
  for (std::int32_t r = 0; r < workers; ++r) {
    try {
      all.push_back(executor::read_records(fmt::format("{}.{}.records", records, r)));
    } catch (const UserError&) {
      return {};
    }
  }
  return all;
}

std::string rate_of(const MeasuredPoint& point) {
  if (point.flops && *point.flops > 4.0 * static_cast<double>(point.bytes.value_or(0))) return fmt::format("{:.2f} GFLOP/s", *point.flops / point.spread.median_s * 1e-9);
  if (point.bytes) return fmt::format("{:.2f} GB/s", static_cast<double>(*point.bytes) / point.spread.median_s * 1e-9);
  return "";
}

struct Measured {
  std::vector<MeasuredPoint> points;
  std::vector<PointLeftOut> left_out;
};

// Which of a set of points are to be measured, given those that are known.
using MakePlan = std::function<plan::Plan(const std::set<std::string>& known)>;

// Measures sets of points, storing each point as it ends.
class Campaign {
 public:
  Campaign(const Invocation& invocation, std::string backend) : invocation_{invocation}, backend_{std::move(backend)}, worker_{worker_of(backend_)}, folder_{invocation.text("records")} {
    machine_ = invocation.text("machine").value_or(machine_name());
    file_ = invocation.text("db");
    // A folder that is not there is said before anything is measured.
    if (file_ && (std::filesystem::exists(*file_) || !std::filesystem::exists(std::filesystem::absolute(*file_).parent_path()))) open_store();
  }

  Measured measure(std::int32_t workers, const MakePlan& make, Progress& progress) {
    const plan::Plan plan = make(known(workers));
    const std::size_t wanted = plan.programs.front().instructions.empty() ? 0 : *plan.programs.front().instructions.back().layer + std::size_t{1};
    if (wanted == 0) return {};
    const std::string base = (folder_.path() / fmt::format("points{}", workers)).string();
    plan::save_plan(plan, base + ".plan");
    const std::string budget = invocation_.has("quick") ? "150" : "1000";
    std::vector<std::string> arguments{base + ".plan", "--records", base, "--measure", budget};
    if (invocation_.has("share-gpu")) arguments.emplace_back("--share-gpu");
    Child child{worker_call(invocation_, workers, worker_, arguments)};
    std::vector<MeasuredPoint> points;
    std::vector<PointLeftOut> refused;
    const auto take = [&] {
      const std::vector<executor::Records> records = read_all(base, workers);
      if (records.empty()) return;
      std::vector<MeasuredPoint> now = measured_points(plan, records);
      if (file_ && now.size() > points.size()) open_store();
      for (std::size_t i = points.size(); i < now.size() && store_; ++i) store_->append(stored_point(now[i], point_key(backend_, machine_, workers, now[i].name), records.front(), utc_now()));
      points = std::move(now);
      refused = left_out(records.front());
      progress.show(fmt::format("{} worker{}: {} of {} points", workers, workers == 1 ? "" : "s", points.size() + refused.size(), wanted));
    };
    std::optional<int> status;
    while (!(status = child.poll())) {
      std::this_thread::sleep_for(std::chrono::milliseconds{300});
      take();
    }
    take();
    if (*status != 0) {
      folder_.keep();
      throw SystemError(fmt::format("measuring ended with status {} after {} of {} points; records are kept in {}", *status, points.size(), wanted, folder_.path().string()));
    }
    return {std::move(points), std::move(refused)};
  }

 private:
  // A new file begins with its first point: none is left behind where no worker runs.
  void open_store() {
    if (!store_) store_.emplace(*file_, trace::Store::Mode::kAppend);
  }
  std::set<std::string> known(std::int32_t workers) {
    if (!store_) return {};
    std::set<std::string> names;
    for (const trace::RunSummary& run : store_->runs()) {
      if (run.origin == "measured" && run.scenario_hash == trace::scenario_hash(point_key(backend_, machine_, workers, run.name))) names.insert(run.name);
    }
    return names;
  }

  const Invocation& invocation_;
  std::string backend_;
  std::string worker_;
  std::string machine_;
  RecordFolder folder_;
  std::optional<std::string> file_;
  std::optional<trace::Store> store_;
};

struct Results {
  nlohmann::ordered_json json;
  Table table{{"point", "median", "spread", "samples", "rate"}};
  std::vector<PointLeftOut> left_out;
  std::size_t points = 0;

  void add(const Measured& measured, std::int32_t workers) {
    for (const MeasuredPoint& point : measured.points) {
      table.add({point.name, human_seconds(point.spread.median_s), fmt::format("{:.1f} %", 100.0 * point.spread.relative), std::to_string(point.seconds.size()), rate_of(point)});
      json["points"].push_back({{"name", point.name}, {"workers", workers}, {"time_s", point.spread.median_s}, {"spread", point.spread.relative}, {"samples", point.seconds.size()}});
      ++points;
    }
    for (const PointLeftOut& point : measured.left_out) {
      json["left_out"].push_back({{"name", point.name}, {"workers", workers}, {"reason", point.reason}});
      left_out.push_back(point);
    }
  }
};

Status measure(const Invocation& invocation, Session& session) {
  const std::string backend = invocation.text("backend").value_or("cpu");
  const bool gpu = backend == "cuda";
  const bool quick = invocation.has("quick");
  const std::set<std::int32_t> counts = worker_counts(invocation, backend);
  const std::set<std::int32_t> clocks = clocks_of(invocation, backend);
  Campaign campaign{invocation, backend};
  Results results{.json = {{"kind", "measure"}, {"backend", backend}, {"points", nlohmann::ordered_json::array()}, {"left_out", nlohmann::ordered_json::array()}}};
  {
    Progress progress{invocation.has("quiet")};
    for (const std::int32_t workers : counts) {
      results.add(campaign.measure(workers, [&](const auto& known) { return gpu ? gpu_points(workers, quick, known) : cpu_points(workers, quick, known); }, progress), workers);
    }
    for (const std::int32_t mhz : clocks) {
      const LockedClock locked{mhz};
      results.add(campaign.measure(1, [&](const auto& known) { return clock_points(mhz, known); }, progress), 1);
    }
  }
  write_json(invocation, json_text(results.json));
  std::string text = results.points == 0 ? "every point is in the store already\n" : results.table.render(session.terminal, "  ");
  for (const PointLeftOut& point : results.left_out) text += fmt::format("left out: {}: {}\n", point.name, point.reason);
  print_text(invocation, text);
  return Status::kDone;
}

}  // namespace

Command measure_command() {
  return {.name = "measure",
          .summary = "micro-benchmarks of this machine, for calibration",
          .operands = {.usage = "", .min = 0, .max = 0},
          .details = "Times matrix products, attention, streams, Adam, copies and collectives, each until its median is known, alone and on several "
                     "workers at once. Points are stored as they end: a run that was interrupted goes on where it stopped.",
          .options = measure_options(),
          .run = measure};
}

}  // namespace stepcast::app
