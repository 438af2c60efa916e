#include "app/network/recorded_flows.hpp"

#include <cmath>
#include <map>

#include <fmt/format.h>

#include "sim/base/csv.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/random.hpp"
#include "sim/base/text.hpp"

namespace stepcast::app {
namespace {

constexpr double kPicoseconds = 1e6;  // in a microsecond
constexpr double kLongestUs = 1e12;   // about 11 days: inside the clock's range
constexpr double kMostBytes = 1e12;   // a day at 100 Gb/s

class Reader {
 public:
  Reader(const CsvTable& table, const topology::HtsimFabric& fabric) : table_{table}, fabric_{fabric} {
    for (const topology::HtsimLink& link : fabric.links()) {
      read_.traffic.wires.push_back({link.rate.si(), link.latency, link.from, link.to});
    }
  }

  RecordedCase read() {
    if (table_.rows().empty()) {
      problems_.add({.where = {table_.file(), 1, 1}, .problem = "no flows", .expected = "a row for each flow after the header"});
    }
    for (const CsvTable::Row& row : table_.rows()) read_row(row);
    problems_.throw_if_any();
    return std::move(read_);
  }

 private:
  void read_row(const CsvTable::Row& row) {
    const double most_host = static_cast<double>(fabric_.hosts()) - 1;
    const auto from = static_cast<std::uint32_t>(number(row, "src", 0.0, most_host, true));
    const auto to = static_cast<std::uint32_t>(number(row, "dst", 0.0, most_host, true));
    const double bytes = number(row, "size_bytes", 1.0, kMostBytes, true);
    RecordedFlow flow{.id = row.fields[column("flow_id")],
                      .start_us = number(row, "start_us", 0.0, kLongestUs, false),
                      .completion_us = number(row, "fct_us", 1e-6, kLongestUs, false)};
    if (from == to) {
      refuse(row, "dst", "the flow ends where it starts", "another host than src");
      return;
    }
    read_.traffic.messages.push_back({.bytes = bytes,
                                      .start = TimePoint::at(Duration::picoseconds(std::llround(flow.start_us * kPicoseconds))),
                                      .routes = routes(row, from, to)});
    read_.flows.push_back(std::move(flow));
  }

  std::vector<std::uint32_t> routes(const CsvTable::Row& row, std::uint32_t from, std::uint32_t to) {
    const std::string& path = row.fields[column("path")];
    if (path.empty()) return spread(from, to);
    network::Route route{fabric_.host_up(from)};
    for (const std::string& hop : split(path, '|')) {
      const std::optional<std::uint32_t> link = fabric_.find(hop);
      if (!link) {
        refuse(row, "path", fmt::format("the fabric has no link '{}'", hop), "names such as LS0->US1(0), with '|' between");
        return {};
      }
      route.push_back(*link);
    }
    route.push_back(fabric_.host_down(to));
    for (std::size_t i = 1; i < route.size(); ++i) {
      if (read_.traffic.wires[route[i - 1]].to == read_.traffic.wires[route[i]].from) continue;
      refuse(row, "path", fmt::format("hop {} does not start where the one before it ends", i), "a path from src's ToR to dst's");
      return {};
    }
    const std::size_t shortest = fabric_.path(from, to, 0).size();
    if (route.size() != shortest) {
      refuse(row, "path", "not a shortest path", fmt::format("{} hops between switches", shortest - 2));
      return {};
    }
    return {add(std::move(route))};
  }

  std::vector<std::uint32_t> spread(std::uint32_t from, std::uint32_t to) {
    const auto [at, is_new] = spread_.try_emplace({from, to});
    for (std::uint32_t path = 0; is_new && path < fabric_.path_count(from, to); ++path) {
      at->second.push_back(add(fabric_.path(from, to, path)));
    }
    return at->second;
  }

  std::uint32_t add(network::Route route) {
    read_.traffic.routes.push_back(std::move(route));
    return static_cast<std::uint32_t>(read_.traffic.routes.size() - 1);
  }

  double number(const CsvTable::Row& row, const char* name, double least, double most, bool whole) {
    const std::optional<double> value = parse_number(trim(row.fields[column(name)]));
    const bool fits = value && *value >= least && *value <= most && (!whole || *value == static_cast<double>(static_cast<std::int64_t>(*value)));
    if (fits) return *value;
    refuse(row, name, value ? "out of range" : "not a number", fmt::format("{} from {} to {}", whole ? "a whole number" : "a number", least, most));
    return least;
  }

  [[nodiscard]] std::size_t column(const char* name) const { return table_.require_column(name); }

  void refuse(const CsvTable::Row& row, const char* name, const std::string& problem, const std::string& expected) {
    int position = 1;  // exact unless a field before it is quoted
    for (std::size_t i = 0; i < column(name); ++i) position += static_cast<int>(row.fields[i].size()) + 1;
    problems_.add({.where = {table_.file(), row.line, position}, .path = name, .problem = problem, .expected = expected,
                   .got = row.fields[column(name)]});
  }

  const CsvTable& table_;
  const topology::HtsimFabric& fabric_;
  RecordedCase read_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> spread_;  // routes by pair of hosts
  Diagnostics problems_;
};

}  // namespace

RecordedCase read_recorded_case(const std::string& file, const topology::HtsimFabric& fabric) {
  const CsvTable table = CsvTable::read(file);
  return Reader{table, fabric}.read();
}

network::Traffic with_ways_back(const RecordedCase& recorded, const topology::HtsimFabric& fabric, std::uint64_t seed) {
  network::Traffic traffic = recorded.traffic;
  Rng random{seed, "ways back"};
  for (network::Message& message : traffic.messages) {
    const network::Route& route = traffic.routes[message.routes.front()];
    const std::uint32_t from = traffic.wires[route.back()].to;
    const std::uint32_t to = traffic.wires[route.front()].from;
    const std::uint32_t paths = fabric.path_count(from, to);
    const bool spread = message.routes.size() > 1;
    for (std::uint32_t path = 0; path < (spread ? paths : 1); ++path) {
      message.back_routes.push_back(static_cast<std::uint32_t>(traffic.routes.size()));
      traffic.routes.push_back(fabric.path(from, to, spread ? path : static_cast<std::uint32_t>(random.below(paths))));
    }
  }
  return traffic;
}

}  // namespace stepcast::app
