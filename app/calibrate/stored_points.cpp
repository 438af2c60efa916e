#include "app/calibrate/stored_points.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <regex>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "calibration/json_stream.hpp"
#include "executor/common/sampling.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/text.hpp"
#include "sim/trace/store.hpp"

namespace stepcast::app {
namespace {

using calibration::printable;
using plan::Kernel;
using plan::OpClass;
using plan::Pass;

// NVML's reasons that slow a clock below what the program could have: power cap, hardware, software thermal, hardware thermal, brake.
constexpr std::uint64_t kThrottle = 0x4 | 0x8 | 0x20 | 0x40 | 0x80;

std::int64_t whole(const std::string& text) { return std::stoll(text); }

template <class E>
std::optional<E> word_of(const std::string& text, std::initializer_list<E> all) {
  for (const E e : all)
    if (text == plan::name_of(e)) return e;
  return std::nullopt;
}

Pass pass_of(const std::string& text) { return word_of(text, {Pass::kForward, Pass::kInputGrad, Pass::kWeightGrad, Pass::kBackward}).value_or(Pass::kForward); }
plan::Dtype dtype_of(const std::string& text) {
  using plan::Dtype;
  return word_of(text, {Dtype::kFp32, Dtype::kTf32, Dtype::kBf16, Dtype::kFp16, Dtype::kFp8}).value_or(Dtype::kFp32);
}

Kernel product(const plan::GemmShape& s, plan::Dtype dtype, Pass pass) {
  const std::int64_t element = plan::element_bytes(dtype);
  return {.op = OpClass::kGemm, .pass = pass, .dtype = dtype, .gemm = s, .attention = {}, .flops = Flops::from_si(2.0 * static_cast<double>(s.batch * s.m * s.n) * static_cast<double>(s.k)),
          .read = Bytes{element * s.batch * (s.m * s.k + s.k * s.n)}, .written = Bytes{std::max<std::int64_t>(2, element) * s.batch * s.m * s.n}};
}

Kernel attention(std::int64_t heads, std::int64_t dim, std::int64_t length, Pass pass) {
  const plan::AttentionShape s{.batch = 1, .query_heads = heads, .kv_heads = heads, .query_length = length, .kv_length = length, .head_dim = dim, .value_dim = dim, .causal = true, .window = {}};
  const std::int64_t tensor = plan::element_bytes(plan::Dtype::kFp32) * heads * length * dim;
  const double products = pass == Pass::kForward ? 2.0 : 5.0;
  return {.op = OpClass::kAttention, .pass = pass, .dtype = plan::Dtype::kFp32, .gemm = {}, .attention = s, .flops = Flops::from_si(products * static_cast<double>(heads * length * length) * static_cast<double>(dim)),
          .read = Bytes{3 * tensor}, .written = Bytes{tensor}};
}

Kernel moving(OpClass op, std::int64_t read, std::int64_t written, double flops) {
  return {.op = op, .pass = Pass::kForward, .dtype = plan::Dtype::kFp32, .gemm = {}, .attention = {}, .flops = Flops::from_si(flops), .read = Bytes{read}, .written = Bytes{written}};
}

std::optional<Kernel> kernel_of_work(const nlohmann::json& work) {
  const auto op = word_of(work.value("op", ""), {OpClass::kGemm, OpClass::kAttention, OpClass::kElementwise, OpClass::kNorm, OpClass::kSoftmax, OpClass::kEmbedding, OpClass::kLoss, OpClass::kOptimizer});
  if (!op || !work.contains("read_bytes")) return std::nullopt;
  Kernel k = moving(*op, work.at("read_bytes"), work.at("written_bytes"), work.at("flops"));
  k.pass = pass_of(work.value("pass", ""));
  k.dtype = dtype_of(work.value("dtype", ""));
  k.launches = work.value("launches", 1);
  if (*op == OpClass::kGemm) k.gemm = plan::GemmShape{work.at("batch"), work.at("m"), work.at("n"), work.at("k")};
  if (*op == OpClass::kAttention) {
    k.attention = plan::AttentionShape{.batch = work.at("batch"), .query_heads = work.at("query_heads"), .kv_heads = work.at("kv_heads"), .query_length = work.at("query_length"), .kv_length = work.at("kv_length"),
                                       .head_dim = work.at("head_dim"), .value_dim = work.at("value_dim"), .causal = work.at("causal"), .window = {}};
  }
  return k;
}

void read_cost(StoredPoint& point) {
  static const std::regex kCost{R"((copy|nvme write|nvme read|host adam|all_reduce|all_gather|reduce_scatter|broadcast|all_to_all|send_receive)(?: ([a-z]+_to_[a-z]+|both ways))? (\d+)(?: (pinned|pageable|managed))?(?: x\d+)?)"};
  std::smatch m;
  if (!std::regex_match(point.name, m, kCost)) return;
  point.cost = m[1].str() + (m[2].matched ? " " + m[2].str() : "") + (m[4].matched ? " " + m[4].str() : "");
  constexpr std::int64_t kAdamBytes = 28;  // parameter, gradient, two moments read; three written
  point.bytes = whole(m[3]) * (m[1] == "host adam" ? kAdamBytes : 1);
}

std::vector<double> usable_samples(const nlohmann::json& json, StoredPoint& point) {
  std::vector<double> seconds = seconds_of_record(json);
  point.samples = seconds.size();
  const nlohmann::json readings = json.value("readings", nlohmann::json::object());
  std::vector<double> kept;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    bool slowed = false;
    if (readings.is_object() && readings.contains("throttle_reasons") && i < readings.at("throttle_reasons").size()) {
      const double reasons = readings.at("throttle_reasons").at(i);
      slowed = reasons >= 1.0 && reasons < 1e15 && (static_cast<std::uint64_t>(reasons) & kThrottle) != 0;
    }
    if (slowed) ++point.throttled;
    if (!slowed && seconds[i] > 0.0) kept.push_back(seconds[i]);
  }
  return kept;
}

void check_kernel(const Kernel& k) {
  const auto least = [](std::int64_t low, std::initializer_list<std::int64_t> values) {
    for (const std::int64_t v : values)
      if (v < low) throw std::out_of_range(std::to_string(v) + " where at least " + std::to_string(low) + " belongs");
  };
  if (k.gemm) least(1, {k.gemm->batch, k.gemm->m, k.gemm->n, k.gemm->k});
  if (k.attention) least(1, {k.attention->batch, k.attention->query_heads, k.attention->kv_heads, k.attention->query_length, k.attention->kv_length, k.attention->head_dim, k.attention->value_dim});
  least(0, {k.read.count(), k.written.count(), k.launches});
  if (!std::isfinite(k.flops.si()) || k.flops.si() < 0.0) throw std::out_of_range("a number of operations below 0");
}

// A point of `stepcast measure`; none where the record is of something else.
std::optional<StoredPoint> point_of(const trace::RunSummary& summary, const trace::Run& run) {
  const nlohmann::json json = nlohmann::json::parse(run.results, nullptr, false);
  if (!json.is_object() || json.value("kind", "") != "measure") return std::nullopt;
  StoredPoint point;
  point.name = summary.name;
  point.created = summary.created;
  for (const std::string& line : split(run.scenario, '\n')) {
    if (line.starts_with("measure ")) point.backend = line.substr(8);
    if (line.starts_with("machine ")) point.machine = line.substr(8);
    if (line.starts_with("workers ")) {
      const std::int64_t workers = whole(line.substr(8));
      if (workers < 1 || workers > 1'000'000) throw std::out_of_range("workers " + std::to_string(workers));
      point.workers = static_cast<std::int32_t>(workers);
    }
  }
  const std::vector<double> kept = usable_samples(json, point);
  if (!kept.empty()) point.seconds = executor::spread_of(kept).median_s;
  point.beside = point.name.find(" beside ") != std::string::npos;
  const bool single = json.contains("work") && json.at("work").is_array() && json.at("work").size() == 1 && !json.at("work").front().contains("times");
  if (!point.beside) point.kernel = single ? kernel_of_work(json.at("work").front()) : json.contains("work") ? std::nullopt : kernel_of_name(point.name);
  if (point.kernel) check_kernel(*point.kernel);
  if (!point.kernel && !point.beside) read_cost(point);
  return point;
}

}  // namespace

void read_record(const std::string& database, const trace::RunSummary& run, const std::function<void()>& read) {
  const auto refuse = [&](std::string why) {
    if (const std::size_t code = why.find("] "); why.starts_with("[json.exception") && code != std::string::npos) why = why.substr(code + 2);
    throw UserError(Diagnostic{.where = {database, 0, 0}, .problem = fmt::format("run {} '{}': its record is not of the form that stepcast writes", run.id.value(), printable(run.name.substr(0, 60))),
                               .got = printable(why)});
  };
  try {
    read();
  } catch (const nlohmann::json::exception& error) {
    refuse(error.what());
  } catch (const std::logic_error& error) {
    refuse(error.what());
  }
}

std::vector<double> seconds_of_record(const nlohmann::json& record) {
  constexpr double kLongest = 1e7;  // [s] four months: no kernel takes that long, a damaged record may say so
  std::vector<double> seconds = record.value("seconds", std::vector<double>{});
  for (const double s : seconds)
    if (!std::isfinite(s) || s > kLongest) throw std::out_of_range(fmt::format("a time of {:g} s", s));
  return seconds;
}

std::optional<Kernel> kernel_of_name(const std::string& name) {
  static const std::regex kGemm{R"(gemm (?:(\d+) x )?(\d+)x(\d+)x(\d+) (?:(fp32|tf32|bf16|fp16|fp8) )?([a-z_]+) ?(?:on \d+ at once)?)"};
  static const std::regex kAttention{R"(attention (\d+) heads of (\d+), (\d+) tokens ([a-z_]+))"};
  static const std::regex kMoving{R"((stream|activation|norm|softmax|sum|loss|fill) (\d+) \+ (\d+)(?: on \d+ at once)?)"};
  static const std::regex kAdam{R"(adam (\d+))"};
  std::smatch m;
  if (std::regex_match(name, m, kGemm)) {
    return product({m[1].matched ? whole(m[1]) : 1, whole(m[2]), whole(m[3]), whole(m[4])}, dtype_of(m[5].matched ? m[5].str() : "fp32"), pass_of(m[6]));
  }
  if (std::regex_match(name, m, kAttention)) return attention(whole(m[1]), whole(m[2]), whole(m[3]), pass_of(m[4]));
  if (std::regex_match(name, m, kMoving)) {
    const OpClass op = m[1] == "norm" ? OpClass::kNorm : m[1] == "softmax" ? OpClass::kSoftmax : m[1] == "loss" ? OpClass::kLoss : OpClass::kElementwise;
    return moving(op, whole(m[2]), whole(m[3]), 0.0);
  }
  if (std::regex_match(name, m, kAdam)) return moving(OpClass::kOptimizer, 16 * whole(m[1]), 12 * whole(m[1]), 14.0 * static_cast<double>(whole(m[1])));
  return std::nullopt;
}

std::vector<StoredPoint> stored_points(const std::string& database) {
  const trace::Store store{database, trace::Store::Mode::kRead};
  std::vector<StoredPoint> points;
  std::map<std::string, std::size_t> place;
  for (const trace::RunSummary& summary : store.runs()) {
    if (summary.origin != "measured") continue;
    const trace::Run run = store.load(summary.id);
    std::optional<StoredPoint> read;
    read_record(database, summary, [&] { read = point_of(summary, run); });
    if (!read) continue;
    StoredPoint point = std::move(*read);
    const auto [found, fresh] = place.emplace(run.scenario, points.size());
    if (fresh) points.push_back(std::move(point));
    else points[found->second] = std::move(point);
  }
  return points;
}

}  // namespace stepcast::app
