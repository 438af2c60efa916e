#include "app/scenario/traffic_file.hpp"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "sim/base/csv.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/plain_text.hpp"
#include "sim/base/random.hpp"
#include "sim/base/text.hpp"
#include "sim/scenario/include.hpp"
#include "sim/scenario/overlay.hpp"
#include "sim/scenario/read.hpp"

namespace stepcast::app {
namespace {

using scenario::TrafficKind;
using scenario::TrafficPattern;

constexpr std::size_t kMostFlows = 20'000'000;  // a gigabyte of them

struct Document {
  std::int64_t schema = 1;
  std::string name = "network";
  std::int64_t seed = 1;
  scenario::Cluster cluster;
  scenario::TrafficSection traffic;
  template <class V>
  void visit(V& v) {
    v.key("schema", schema, "Version of this file format.", scenario::only_version(1));
    v.key("name", name, "What the run is called.", scenario::not_empty());
    v.key("seed", seed, "Seed of everything random.", scenario::at_least(0));
    v.key("cluster", cluster, "The machine.", scenario::required());
    v.key("traffic", traffic, "The flows.", scenario::required());
  }
};

class Expansion {
 public:
  Expansion(const TrafficFile& file, std::uint32_t gpus) : file_{file}, gpus_{gpus} {}

  std::vector<run::FlowSpec> run() {
    const scenario::TrafficSection& traffic = file_.traffic;
    for (std::size_t i = 0; i < traffic.flows.size(); ++i) {
      const scenario::TrafficFlow& flow = traffic.flows[i];
      const std::string path = fmt::format("traffic.flows[{}]", i);
      const auto gpu = [&](const char* key, std::int64_t value) {
        if (value >= gpus_) throw UserError(file_.loaded.where.error(path + "." + key, "no such GPU", fmt::format("0 to {}", gpus_ - 1), std::to_string(value)));
        return static_cast<std::uint32_t>(value);
      };
      add(gpu("from", flow.from), gpu("to", flow.to), flow.size, flow.start, flow.axis, [&] { return file_.loaded.where.error(path + ".to", "a flow from a GPU to itself", "another GPU"); });
    }
    for (std::size_t i = 0; i < traffic.patterns.size(); ++i) pattern(traffic.patterns[i], i);
    if (traffic.list) list(scenario::resolve_path(*traffic.list, file_.file));
    if (traffic.matrix) matrix(scenario::resolve_path(*traffic.matrix, file_.file));
    if (flows_.empty()) throw UserError(file_.loaded.where.error("traffic", "no flows", "flows, patterns, a list or a matrix"));
    return std::move(flows_);
  }

 private:
  template <class Fault>
  void add(std::uint32_t from, std::uint32_t to, Bytes bytes, Duration start, std::optional<scenario::TrafficAxis> axis, Fault fault) {
    if (from == to) throw UserError(fault());
    if (flows_.size() >= kMostFlows) throw UserError(file_.loaded.where.error("traffic", "too many flows", fmt::format("{} at most", kMostFlows)));
    flows_.push_back({from, to, bytes, start, axis});
  }
  void add(std::uint32_t from, std::uint32_t to, const TrafficPattern& p) {
    add(from, to, p.size, p.start, p.axis, [&] { return file_.loaded.where.error("traffic.patterns", "a flow from a GPU to itself"); });
  }

  void pattern(const TrafficPattern& p, std::size_t place) {
    const std::string path = fmt::format("traffic.patterns[{}]", place);
    const std::int64_t group = p.group.value_or(gpus_);
    if (gpus_ < 2) throw UserError(file_.loaded.where.error(path, "one GPU has nobody to send to", "a cluster of two GPUs or more"));
    if (gpus_ % group != 0) {
      throw UserError(file_.loaded.where.error(path + ".group", fmt::format("{} does not divide the cluster", group), fmt::format("a divisor of {} GPUs", gpus_)));
    }
    if (p.by % gpus_ == 0) throw UserError(file_.loaded.where.error(path + ".by", "would send to the same GPU", fmt::format("no multiple of {}", gpus_), std::to_string(p.by)));
    Rng rng{static_cast<std::uint64_t>(file_.loaded.scenario.seed), "traffic", place};
    const auto size = static_cast<std::uint32_t>(group);
    switch (p.kind) {
      case TrafficKind::kPermutation: {
        std::vector<std::uint32_t> order(gpus_);
        for (std::uint32_t g = 0; g < gpus_; ++g) order[g] = g;
        for (std::uint32_t g = gpus_ - 1; g > 0; --g) std::swap(order[g], order[rng.below(g + 1)]);
        for (std::uint32_t g = 0; g < gpus_; ++g) add(order[g], order[(g + 1) % gpus_], p);
        return;
      }
      case TrafficKind::kRandom:
        for (std::uint32_t g = 0; g < gpus_; ++g) {
          for (std::int64_t k = 0; k < p.flows_per_gpu; ++k) {
            const auto to = static_cast<std::uint32_t>(rng.below(gpus_ - 1));
            add(g, to + (to >= g ? 1 : 0), p);
          }
        }
        return;
      case TrafficKind::kShift:
        for (std::uint32_t g = 0; g < gpus_; ++g) add(g, static_cast<std::uint32_t>((g + p.by) % gpus_), p);
        return;
      default: break;
    }
    for (std::uint32_t first = 0; first < gpus_; first += size) {
      for (std::uint32_t i = 0; i < size; ++i) {
        if (p.kind == TrafficKind::kRing) add(first + i, first + (i + 1) % size, p);
        if (p.kind == TrafficKind::kIncast && i > 0) add(first + i, first, p);
        if (p.kind != TrafficKind::kAllToAll) continue;
        for (std::uint32_t step = 1; step < size; ++step) add(first + i, first + (i + step) % size, p);
      }
    }
  }

  [[nodiscard]] Diagnostic cell(const std::string& file, int line, const std::string& column, std::string problem, std::string expected, std::string got) const {
    return {.where = {file, line, 1}, .path = column, .problem = std::move(problem), .expected = std::move(expected), .got = std::move(got)};
  }

  double number(const std::string& file, int line, const std::string& column, const std::string& text, double most, bool whole) const {
    const std::optional<double> value = parse_number(trim(text));
    if (!value || *value < 0.0 || *value > most || (whole && *value != std::floor(*value))) {
      throw UserError(cell(file, line, column, "not in range", fmt::format("{} from 0 to {:g}", whole ? "a whole number" : "a number", most), text));
    }
    return *value;
  }

  void list(const std::string& file) {
    const CsvTable table = CsvTable::read(file);
    const std::size_t from = table.require_column("from");
    const std::size_t to = table.require_column("to");
    const std::size_t bytes = table.require_column("size_bytes");
    const std::optional<std::size_t> start = table.column("start_s");
    for (const CsvTable::Row& row : table.rows()) {
      const auto field = [&](std::size_t column, double most, bool whole) {
        return number(file, row.line, table.header()[column], row.fields[column], most, whole);
      };
      const auto a = static_cast<std::uint32_t>(field(from, gpus_ - 1.0, true));
      const auto b = static_cast<std::uint32_t>(field(to, gpus_ - 1.0, true));
      const double size = field(bytes, kMostBytes, true);
      if (size == 0.0) throw UserError(cell(file, row.line, "size_bytes", "nothing to move", "above 0", "0"));
      const Duration at = start ? Duration::from_seconds(field(*start, kMostSeconds, false)) : Duration{};
      add(a, b, Bytes{static_cast<std::int64_t>(size)}, at, std::nullopt, [&] { return cell(file, row.line, "to", "a flow from a GPU to itself", "another GPU", std::to_string(b)); });
    }
  }

  void matrix(const std::string& file) {
    const std::vector<std::string> lines = split(read_text_file(file, "lines of numbers"), '\n');
    std::uint32_t from = 0;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (trim(lines[i]).empty()) continue;
      const int line = static_cast<int>(i) + 1;
      const std::vector<std::string> cells = split(std::string{trim(lines[i])}, ',');
      if (cells.size() != gpus_ || from >= gpus_) {
        throw UserError(cell(file, line, "matrix", from >= gpus_ ? "one row too many" : "a row of another length than the cluster",
                             fmt::format("{} rows of {} numbers", gpus_, gpus_), std::to_string(cells.size())));
      }
      for (std::uint32_t to = 0; to < gpus_; ++to) {
        const double size = number(file, line, fmt::format("column {}", to), cells[to], kMostBytes, true);
        if (size == 0.0) continue;
        add(from, to, Bytes{static_cast<std::int64_t>(size)}, {}, std::nullopt, [&] { return cell(file, line, fmt::format("column {}", to), "a flow from a GPU to itself", "0 on the diagonal", cells[to]); });
      }
      ++from;
    }
    if (from != gpus_) throw UserError(cell(file, 1, "matrix", "too few rows", std::to_string(gpus_), std::to_string(from)));
  }

  static constexpr double kMostBytes = 1e15;
  static constexpr double kMostSeconds = 1e6;
  const TrafficFile& file_;
  std::uint32_t gpus_;
  std::vector<run::FlowSpec> flows_;
};

}  // namespace

TrafficFile load_traffic_file(const std::string& file, const std::vector<std::string>& sets) {
  Diagnostics problems;
  auto root = scenario::parse_yaml(read_file(file), file, problems);
  problems.throw_if_any();
  if (!root) throw UserError(Diagnostic{.where = {file, 1, 1}, .problem = "empty file", .expected = "a cluster and its traffic"});
  for (const std::string& set : sets) scenario::apply_set(*root, set, problems);
  scenario::include_network(*root, file, problems);
  const auto read = scenario::read_tree<Document>(*root, problems);
  problems.throw_if_any();
  TrafficFile result{.file = file, .loaded = {}, .traffic = read.traffic};
  result.loaded.scenario.name = read.name;
  result.loaded.scenario.seed = read.seed;
  result.loaded.scenario.cluster = read.cluster;
  std::string& node = result.loaded.scenario.cluster.node;
  if (scenario::is_node_file(node)) node = scenario::resolve_path(node, file);
  result.loaded.where = scenario::Positions{*root};
  return result;
}

std::vector<run::FlowSpec> flows_of(const TrafficFile& file, std::uint32_t gpus) { return Expansion{file, gpus}.run(); }

}  // namespace stepcast::app
