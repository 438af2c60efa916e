// Recorded packet-level cases replayed: ../shared/packet_truth (htsim, six transports). Without the recordings the
// tests are skipped.
// - The plain fluid must give the recorded fluid's times: they have four decimals of a microsecond, so half of the
//   last one and 1e-6 of the time are allowed.
// - The transport models must be within the floors below on every case, and nearer to the packets than the plain fluid
//   by transport. The table that this prints is the one in docs/guide/transports.md.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "app/network/connection_matrix.hpp"
#include "app/network/recorded_flows.hpp"
#include "app/network/replay.hpp"
#include "models/network/transport/fluid_transport.hpp"
#include "models/network/transport/transport_models.hpp"
#include "sim/base/csv.hpp"
#include "sim/base/text.hpp"
#include "tests/support/shared_data.hpp"

using namespace stepcast;

namespace {

constexpr double kHalfLastDecimal = 0.5e-4;  // [us]
constexpr double kRelative = 1e-6;
constexpr std::uint64_t kSeed = 1;
constexpr std::size_t kRuns = 3;  // the command's default
constexpr double kMeanFloor = 5.0;      // [%]
constexpr double kRoceMeanFloor = 10.0;
constexpr double kMakespanFloor = 5.0;
constexpr double kSprayingFloor = 0.05;

std::string recordings() {
  const auto root = test::shared_path("packet_truth");
  if (!root) std::exit(77);
  return *root;
}

std::vector<std::filesystem::path> files_of(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".csv") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// <transport>__<topology>__<matrix>
topology::HtsimFabric read_fabric(const std::string& root, const std::string& name) {
  const std::string rest = name.substr(name.find("__") + 2);
  return topology::HtsimFabric{topology::read_htsim_topology(root + "/topo/" + rest.substr(0, rest.find("__")) + ".topo")};
}

app::RecordedCase read_case(const std::string& root, const std::string& name, const topology::HtsimFabric& fabric) {
  return app::read_recorded_case(root + "/fct/" + name + ".csv", fabric);
}

// roce_ecmp__ft128... is RoCE with priority flow control alone; the others are called what they are.
std::string transport_of(const std::string& name) {
  const std::string transport = name.substr(0, name.find('_'));
  return transport == "roce" ? "roce_pfc" : transport;
}

struct Outcome {
  app::ReplayReport plain;
  app::ReplayReport transport;
};

double mean_error(const app::ReplayReport& r) { return app::error_pct(r.simulated.mean_us, r.recorded.mean_us); }
double p99_error(const app::ReplayReport& r) { return app::error_pct(r.simulated.p99_us, r.recorded.p99_us); }
double makespan_error(const app::ReplayReport& r) { return app::error_pct(r.simulated.makespan_us, r.recorded.makespan_us); }

std::string errors(const app::ReplayReport& r) {
  return fmt::format("{:>+6.1f} {:>+6.1f} {:>+6.1f} {:>6.1f}", mean_error(r), p99_error(r), makespan_error(r), r.flow_mape_pct);
}

Outcome replay(const std::string& root, const std::string& name) {
  const topology::HtsimFabric fabric = read_fabric(root, name);
  const app::RecordedCase recorded = read_case(root, name, fabric);
  const auto run = [&](const network::TransportModel& m) {
    return app::compare(recorded, app::replay(recorded, fabric, m, {.seed = kSeed}, kRuns), m);
  };
  const network::TransportModel* const model = network::find_transport(transport_of(name));
  REQUIRE(model != nullptr);
  Outcome outcome{run(*network::find_transport("plain")), run(*model)};
  fmt::print("{:<46} | {} | {}\n", name, errors(outcome.plain), errors(outcome.transport));
  return outcome;
}

// Of |error| over the cases of a transport. [%]
struct Averages {
  double mean = 0.0;
  double makespan = 0.0;
  double flow = 0.0;

  void add(const app::ReplayReport& report, std::size_t cases) {
    const double part = 1.0 / static_cast<double>(cases);
    mean += part * std::abs(mean_error(report));
    makespan += part * std::abs(makespan_error(report));
    flow += part * report.flow_mape_pct;
  }
};

void check_floors(const std::string& name, const Outcome& outcome) {
  CAPTURE(name);
  CHECK(std::abs(mean_error(outcome.transport)) <= (outcome.transport.transport == "roce_pfc" ? kRoceMeanFloor : kMeanFloor));
  CHECK(std::abs(makespan_error(outcome.transport)) <= kMakespanFloor);
}

// How much shorter spraying makes the mean completion of one matrix.
double spraying_ratio(const Outcome& sprayed, const Outcome& single, bool recorded) {
  const auto mean = [&](const Outcome& o) { return recorded ? o.transport.recorded.mean_us : o.transport.simulated.mean_us; };
  return mean(sprayed) / mean(single);
}

}  // namespace

TEST_SUITE_BEGIN("diff");

TEST_CASE("packet replay: the plain fluid is the recorded fluid") {
  const std::string root = recordings();
  const auto files = files_of(root + "/maxmin");
  CHECK(files.size() == 15);
  for (const auto& file : files) {
    const app::RecordedCase recorded = read_case(root, file.stem().string(), read_fabric(root, file.stem().string()));
    const auto ours = network::run_fluid(recorded.traffic, network::kRoceFormat);
    const CsvTable table = CsvTable::read(file.string());
    REQUIRE(table.rows().size() == ours.size());
    std::map<std::string, double> theirs;
    for (const CsvTable::Row& row : table.rows()) theirs[row.fields[0]] = parse_number(row.fields[2]).value();
    double worst = 0.0;
    for (std::size_t i = 0; i < ours.size(); ++i) {
      const double expected = theirs.at(recorded.flows[i].id);
      const double difference = std::abs((ours[i].end - ours[i].start).seconds() * 1e6 - expected);
      CAPTURE(recorded.flows[i].id);
      CHECK(difference <= kHalfLastDecimal + kRelative * expected);
      worst = std::max(worst, difference / expected);
    }
    fmt::print("{}: {} flows, largest relative difference {:.1e}\n", file.stem().string(), ours.size(), worst);
  }
}

// ../shared/packet_truth/maxmin/errors.txt: makespan 700.3 us, mean step 21.22 us for the fluid. Along chains of 30 steps
// the last bits decide which of two rings comes first to a shared link, so the makespan is held to 0.1 % only.
TEST_CASE("packet replay: the ring in a closed loop") {
  const std::string root = recordings();
  const std::string name = "uec_ecmp__ft128_1to1__ring16x8_128_250KB";
  const topology::HtsimFabric fabric = read_fabric(root, name);
  app::RecordedCase recorded = read_case(root, name, fabric);
  app::follow_matrix(recorded, root + "/cm/ring16x8_128_250KB.cm");
  const auto run = [&](const char* transport) {
    const network::TransportModel& model = *network::find_transport(transport);
    const app::ReplayReport report = app::compare(recorded, app::replay(recorded, fabric, model, {.seed = kSeed}, kRuns), model);
    fmt::print("closed loop, {}: makespan {:.1f} us, mean step {:.2f} us; recorded {:.1f} and {:.2f}\n", transport,
               report.simulated.makespan_us, report.simulated.mean_us, report.recorded.makespan_us, report.recorded.mean_us);
    return report;
  };
  const app::ReplayReport plain = run("plain");
  CHECK(std::abs(plain.simulated.makespan_us / 700.3 - 1.0) < 1e-3);
  CHECK(std::abs(plain.simulated.mean_us - 21.22) < 0.005 + kRelative * 21.22);
  check_floors(name, {plain, run("uec")});
}

TEST_CASE("packet replay: small cases are within the floors") {
  const std::string root = recordings();
  std::size_t seen = 0;
  for (const auto& file : files_of(root + "/fct")) {
    const std::string name = file.stem().string();
    const bool is_small = name.ends_with("incast8_128_4MB") || name.ends_with("perm32_2MB") || name.ends_with("1to1__perm128_2MB");
    if (!is_small) continue;
    check_floors(name, replay(root, name));
    ++seen;
  }
  CHECK(seen == 11);
}

TEST_SUITE_END();

TEST_SUITE_BEGIN("slow");

TEST_CASE("packet replay: every transport is nearer to its packets than the plain fluid, and within the floors") {
  const std::string root = recordings();
  std::map<std::string, Outcome> outcomes;
  std::map<std::string, std::vector<Outcome>> by_transport;
  fmt::print("{:<46} | {:<27} | {:<27}\n", "errors in %", "plain: mean p99 makesp. flow", "transport");
  for (const auto& file : files_of(root + "/fct")) {
    const std::string name = file.stem().string();
    const Outcome outcome = replay(root, name);
    check_floors(name, outcome);
    by_transport[outcome.transport.transport].push_back(outcome);
    outcomes[name] = outcome;
  }
  CHECK(outcomes.size() == 23);
  for (const auto& [transport, cases] : by_transport) {
    CAPTURE(transport);
    Averages plain, model;
    for (const Outcome& outcome : cases) {
      plain.add(outcome.plain, cases.size());
      model.add(outcome.transport, cases.size());
    }
    fmt::print("{}: {} cases, mean |error| of the mean {:.1f} -> {:.1f} %, of the makespan {:.1f} -> {:.1f} %, of a flow {:.1f} -> {:.1f} %\n",
               transport, cases.size(), plain.mean, model.mean, plain.makespan, model.makespan, plain.flow, model.flow);
    CHECK(model.mean < plain.mean);
    CHECK(model.makespan < plain.makespan);
    CHECK(model.flow < plain.flow);
  }
  for (const std::string transport : {"ndp", "uec"}) {
    const Outcome& sprayed = outcomes.at(transport + "_spray__ft128_1to1__perm128_2MB");
    const Outcome& single = outcomes.at(transport + "_ecmp__ft128_1to1__perm128_2MB");
    const double ours = spraying_ratio(sprayed, single, false);
    const double theirs = spraying_ratio(sprayed, single, true);
    fmt::print("{}: spraying takes {:.3f} of the single-path mean, recorded {:.3f}\n", transport, ours, theirs);
    CHECK(std::abs(ours / theirs - 1.0) <= kSprayingFloor);
  }
}

TEST_SUITE_END();
