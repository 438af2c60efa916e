// Recorded packet-level cases replayed at the level of flows: ../shared/packet_truth (htsim, six transports).
// The plain fluid must give the recorded fluid's times: they have four decimals of a microsecond, so half of
// the last one and 1e-6 of the time are allowed. Without the recordings the tests are skipped.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "app/recorded_flows.hpp"
#include "models/network/transport/fluid_transport.hpp"
#include "sim/base/csv.hpp"
#include "sim/base/text.hpp"
#include "tests/support/shared_data.hpp"

using namespace stepcast;

namespace {

constexpr double kHalfLastDecimal = 0.5e-4;  // [us]
constexpr double kRelative = 1e-6;

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
app::RecordedCase read_case(const std::string& root, const std::string& name) {
  const std::string rest = name.substr(name.find("__") + 2);
  const std::string tree = root + "/topo/" + rest.substr(0, rest.find("__")) + ".topo";
  const topology::HtsimFabric fabric{topology::read_htsim_topology(tree)};
  return app::read_recorded_case(root + "/fct/" + name + ".csv", fabric);
}

}  // namespace

TEST_SUITE_BEGIN("diff");

TEST_CASE("packet replay: the plain fluid is the recorded fluid") {
  const std::string root = recordings();
  const auto files = files_of(root + "/maxmin");
  CHECK(files.size() == 15);
  for (const auto& file : files) {
    const app::RecordedCase recorded = read_case(root, file.stem().string());
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

TEST_SUITE_END();
