// models/network/congestion.hpp against the packet models' own table (calibration/data/congestion.csv, made by bench_congestion):
// fits `loss` and `per_doubling` to 4 MB flows, holds the profiles to the fit, and prints the error there and on the sizes
// held out, beside that of no loss at all.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "calibration/transport_profile.hpp"
#include "models/network/congestion.hpp"
#include "sim/base/csv.hpp"
#include "tests/support/source_dir.hpp"

using namespace stepcast;
using network::Congestion;

TEST_SUITE_BEGIN("diff");

namespace {

struct Row {
  std::string transport;
  double fan_in = 1;
  double oversubscription = 1;
  double bytes = 0;
  double eta = 1;
};

const std::string kRoot = STEPCAST_SOURCE_DIR;

std::vector<Row> rows() {
  const CsvTable table = CsvTable::read(kRoot + "/calibration/data/congestion.csv");
  std::vector<Row> rows;
  for (const CsvTable::Row& row : table.rows()) {
    const auto number = [&](const char* column) { return std::stod(row.fields[table.require_column(column)]); };
    rows.push_back({row.fields[table.require_column("transport")], number("fan_in"), number("oversubscription"), number("size_bytes"), number("eta")});
  }
  return rows;
}

// Of the whole system: max-min over a port that fan_in sources share and an up-link that `oversubscription` do.
double forecast(const Congestion& c, const Row& row) {
  const double port = row.fan_in / c.eta(row.fan_in);
  const double uplink = row.oversubscription / c.eta(row.oversubscription);
  return std::max(row.fan_in, row.oversubscription) / std::max(port, uplink);
}

struct Error {
  double mean = 0.0;
  double most = 0.0;
};

Error error_of(const Congestion& c, const std::vector<Row>& rows, const std::string& transport, double bytes) {
  Error error;
  int count = 0;
  for (const Row& row : rows) {
    if (row.transport != transport || row.bytes != bytes || (row.fan_in == 1 && row.oversubscription == 1)) continue;
    const double off = std::abs(forecast(c, row) - row.eta);
    error.mean += off;
    error.most = std::max(error.most, off);
    ++count;
  }
  error.mean /= count;
  return error;
}

// Least mean absolute error, in steps of 0.05 %; `per_doubling` only where it is worth more than a hundredth of it.
Congestion fit(const std::vector<Row>& rows, const std::string& transport) {
  constexpr double kStep = 5e-4;
  Congestion best;
  double least = error_of(best, rows, transport, 4e6).mean;
  for (int slope = 0; slope <= 20; ++slope) {
    for (int loss = 0; loss <= 100; ++loss) {
      const Congestion c{.loss = loss * kStep, .per_doubling = slope * kStep};
      const double error = error_of(c, rows, transport, 4e6).mean;
      if (error < 0.99 * least) {
        best = c;
        least = error;
      }
    }
  }
  return best;
}

}  // namespace

TEST_CASE("congestion: one loss a transport stands for the packet models over fan-in and oversubscription") {
  const std::vector<Row> table = rows();
  const std::vector<calibration::TransportProfile> profiles = calibration::read_transport_profiles(kRoot + "/calibration/profiles/transport");
  std::printf("transport   loss  per doubling | error mean, most [%%]: 4 MB fitted   16 MB held out    1 MB held out | no loss: 4 MB   16 MB    1 MB\n");
  for (const std::string transport : {"roce_pfc", "ndp", "eqds", "uec"}) {
    CAPTURE(transport);
    const Congestion c = fit(table, transport);
    std::printf("%-9s %5.2f %% %8.2f %%    |        ", transport.c_str(), 100 * c.loss, 100 * c.per_doubling);
    for (const Congestion& tried : {c, Congestion{}}) {
      for (const double bytes : {4e6, 16e6, 1e6}) {
        const Error error = error_of(tried, table, transport, bytes);
        std::printf("%8.2f %5.2f   ", 100 * error.mean, 100 * error.most);
      }
    }
    std::printf("\n");
    CHECK(error_of(c, table, transport, 4e6).mean < 0.011);
    CHECK(error_of(c, table, transport, 16e6).mean < 0.014);
    for (const calibration::TransportProfile& profile : profiles) {
      if (profile.name != transport && profile.name + "_pfc" != transport) continue;
      REQUIRE(profile.congestion);
      CHECK(profile.congestion->loss.value == doctest::Approx(c.loss));
      CHECK(profile.congestion->per_doubling.value == doctest::Approx(c.per_doubling));
    }
  }
}

TEST_SUITE_END();
