#include "calibration/nccl_tests_log.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "calibration/nccl_tests_json.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/text.hpp"

namespace stepcast::calibration {
namespace {

using Tokens = std::vector<std::string_view>;

constexpr std::array kTypes{"int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double",
                            "bfloat16", "fp8_e4m3", "fp8_e5m2", "f8e4m3", "f8e5m2", "char", "int"};
constexpr std::array kOperations{"sum", "prod", "max", "min", "avg", "mulsum", "all", "none"};
constexpr std::array kCollectives{"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoallv", "alltoall",
                                  "sendrecv", "scatter", "gather", "hypercube"};
constexpr std::size_t kMostLeading = 2;  // columns that people put before the size

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<const char*, N>& words) {
  return std::any_of(words.begin(), words.end(), [&](const char* w) { return word == w; });
}

Tokens tokens_of(std::string_view line) {
  Tokens tokens;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t begin = line.find_first_not_of(" \t\r", at);
    if (begin == std::string_view::npos) break;
    const std::size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
    tokens.push_back(line.substr(begin, end - begin));
    at = end;
  }
  return tokens;
}

std::optional<std::int64_t> whole(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Numbers as printf prints them: 2e-07 and 0e+00 too; and N/A.
bool is_figure(std::string_view text) {
  if (text == "N/A") return true;
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && std::isfinite(value);
}

// "[1,0]<stdout>:" of mpirun, "12: " of srun, "[3] " of Hydra, "> " of a quotation, and nccl-tests' own "#".
std::string_view without_label(std::string_view line) {
  line = trim(line);
  for (bool again = true; again && !line.empty();) {
    again = false;
    if (line.front() == '#' || line.front() == '>') {
      line = trim(line.substr(1));
      again = true;
    } else if (line.front() == '[') {
      const std::size_t close = line.find(']');
      if (close == std::string_view::npos || line.substr(1, close - 1).find_first_not_of("0123456789,") != std::string_view::npos) break;
      line = line.substr(close + 1);
      if (line.starts_with("<stdout>:") || line.starts_with("<stderr>:")) line = line.substr(9);
      line = trim(line);
      again = true;
    } else {
      const std::size_t colon = line.find_first_not_of("0123456789");
      if (colon == 0 || colon == std::string_view::npos || line[colon] != ':') break;
      if (colon + 1 < line.size() && line[colon + 1] != ' ') break;
      line = trim(line.substr(colon + 1));
      again = true;
    }
  }
  return line;
}

struct Layout {
  std::size_t block = 4;   // columns of a placement
  bool has_root = true;    // whether a number after the type is a root
  TimeUnit unit = TimeUnit::kMicroseconds;
};

// The header line with the columns' names, if it is one.
std::optional<Layout> header_of(const Tokens& tokens) {
  const auto is = [&](std::string_view word) { return std::find(tokens.begin(), tokens.end(), word); };
  const bool first = is("bytes") != tokens.end() && is("N") != tokens.end();
  const auto time = is("time");
  if ((is("size") == tokens.end() && !first) || time == tokens.end() || is("algbw") == tokens.end()) return std::nullopt;
  Layout layout;
  if (first) layout.unit = TimeUnit::kMilliseconds;
  const auto second = std::find(time + 1, tokens.end(), "time");
  layout.block = static_cast<std::size_t>((second == tokens.end() ? tokens.end() : second) - time);
  layout.has_root = is("root") != tokens.end();
  return layout;
}

NcclTiming timing_at(const Tokens& tokens, std::size_t at) {
  return {std::string{tokens[at]}, std::string{tokens[at + 1]}, std::string{tokens[at + 2]}, std::string{tokens[at + 3]}};
}

class Reader {
 public:
  void line(std::string_view raw, int number) {
    const std::string_view line = without_label(raw);
    note_command(line);
    const Tokens tokens = tokens_of(line);
    if (tokens.empty()) return;
    if (options(line, tokens) || device(tokens)) return;
    version(tokens);
    if (const auto found = header_of(tokens)) {
      layout_ = *found;
      return;
    }
    if (tokens.front() == "(B)" && line.find("(ms)") != std::string_view::npos) layout_.unit = TimeUnit::kMilliseconds;
    row(tokens, number);
  }

  NcclLog finish(const std::string& file) {
    if (log_.rows.empty()) {
      throw UserError(Diagnostic{.where = {file, log_.remarks.empty() ? 0 : log_.remarks.front().line, 0},
                                 .problem = "no row of nccl-tests in it",
                                 .expected = "size count type [redop] [root], then time algbw busbw #wrong out of place and in place",
                                 .got = log_.remarks.empty() ? "" : log_.remarks.front().text});
    }
    if (log_.runs.empty()) log_.runs.emplace_back();
    return std::move(log_);
  }

 private:
  NcclRun& current() {
    if (log_.runs.empty()) log_.runs.emplace_back();
    return log_.runs.back();
  }

  void note_command(std::string_view line) {
    if (line.find("_perf") == std::string_view::npos || line.find("concluded") != std::string_view::npos) return;
    for (const char* collective : kCollectives) {
      const std::size_t at = line.find(std::string{collective} + "_perf");
      if (at == std::string_view::npos) continue;
      // Not the tail of a longer name: reduce in all_reduce.
      if (at > 0 && (std::isalnum(static_cast<unsigned char>(line[at - 1])) != 0 || line[at - 1] == '_')) continue;
      const std::string command{line.find("starting:") == std::string_view::npos ? line : ""};
      if (begun()) {
        pending_ = {collective, command};
        return;
      }
      current().collective = collective;
      if (current().command.empty()) current().command = command;
      return;
    }
  }

  bool options(std::string_view line, const Tokens& tokens) {
    const auto at = std::find(tokens.begin(), tokens.end(), "minBytes");
    if (at == tokens.end()) return false;
    // A run that already has rows ends where the next one's options stand.
    if (begun()) {
      log_.runs.emplace_back();
      layout_ = {};
      log_.runs.back().collective = pending_.first;
      log_.runs.back().command = pending_.second;
    }
    current().options = line;
    return true;
  }

  void version(const Tokens& tokens) {
    for (std::size_t i = 0; i + 2 < tokens.size(); ++i) {
      if (tokens[i] == "nccl-tests" && tokens[i + 1] == "version") log_.tests_version = tokens[i + 2];
      if (tokens[i] == "NCCL" && tokens[i + 1] == "version" && log_.nccl_version.empty()) log_.nccl_version = tokens[i + 2];
      if (tokens[i] == "with" && tokens[i + 1] == "NCCL" && log_.nccl_version.empty()) log_.nccl_version = tokens[i + 2];
      if (tokens[i] == "rccl-tests:" && tokens[i + 1] == "Version") log_.tests_version = "rccl " + std::string{tokens[i + 2]};
    }
  }

  // Rank  0 [Group  0] [Pid  25] on  node01 device  0 [0x10] A100-SXM4-40GB
  bool device(const Tokens& tokens) {
    if (tokens.front() != "Rank" || tokens.size() < 4) return false;
    const auto rank = whole(tokens[1]);
    const auto on = std::find(tokens.begin(), tokens.end(), "on");
    if (!rank || on == tokens.end() || on + 1 == tokens.end()) return false;
    NcclDevice device{.rank = *rank, .host = std::string{on[1]}, .name = {}};
    auto id = std::find_if(on, tokens.end(), [](std::string_view t) { return t.front() == '['; });
    if (id != tokens.end())
      for (++id; id != tokens.end(); ++id) device.name += (device.name.empty() ? "" : " ") + std::string{*id};
    current().devices.push_back(std::move(device));
    return true;
  }

  void row(const Tokens& tokens, int number) {
    const auto type = std::find_if(tokens.begin(), tokens.end(), [](std::string_view t) { return is_one_of(t, kTypes); });
    const auto before = static_cast<std::size_t>(type - tokens.begin());
    if (type == tokens.end() || before < 2 || before > 2 + kMostLeading) return;
    const auto size = whole(tokens[before - 2]);
    const auto count = whole(tokens[before - 1]);
    if (!size || !count || *size < 0 || *count < 0) return;
    const auto refuse = [&](const std::string& why) { log_.remarks.push_back({number, why}); };

    NcclRow row{.line = number, .size = *size, .count = *count, .dtype = std::string{*type}, .unit = layout_.unit};
    Tokens rest{type + 1, std::find(type, tokens.end(), "#")};  // a remark may follow
    if (!rest.empty() && is_one_of(rest.front(), kOperations)) {
      row.redop = rest.front();
      rest.erase(rest.begin());
    }
    const std::size_t two = 2 * layout_.block;
    if (layout_.has_root && !rest.empty() && whole(rest.front()) && (rest.size() == two + 1 || rest.size() == layout_.block + 1)) {
      row.root = rest.front();
      rest.erase(rest.begin());
    }
    if (rest.size() != two && rest.size() != layout_.block) {
      return refuse(fmt::format("{} fields after the type, not {} or {}", rest.size(), two, layout_.block));
    }
    for (const std::string_view field : rest)
      if (!is_figure(field)) return refuse(fmt::format("'{}' is no number", field));
    row.out_of_place = timing_at(rest, 0);
    if (rest.size() == two) row.in_place = timing_at(rest, layout_.block);
    current();
    row.run = log_.runs.size() - 1;
    log_.rows.push_back(std::move(row));
  }

  // The last run has rows: what starts another one from here on is not about it.
  [[nodiscard]] bool begun() const { return !log_.rows.empty() && log_.rows.back().run + 1 == log_.runs.size(); }

  NcclLog log_;
  Layout layout_;
  std::pair<std::string, std::string> pending_;  // collective and command of a run whose options are yet to come
};

// n from busbw / algbw = 2 (n-1)/n or (n-1)/n, over rows whose three digits tell something.
std::optional<std::int64_t> ranks_by_ratio(const NcclLog& log, std::size_t run) {
  double busbw = 0.0;
  double algbw = 0.0;
  for (const NcclRow& row : log.rows) {
    if (row.run != run) continue;
    const auto a = parse_number(row.out_of_place.algbw);
    const auto b = parse_number(row.out_of_place.busbw);
    if (!a || !b || *a < 1.0) continue;
    algbw += *a;
    busbw += *b;
  }
  if (algbw == 0.0) return std::nullopt;
  const double ratio = busbw / algbw;
  const double n = ratio > 1.0 ? 2.0 / (2.0 - ratio) : 1.0 / (1.0 - ratio);
  if (!std::isfinite(n) || n < 1.5 || n > 1e5) return std::nullopt;
  return std::llround(n);
}

}  // namespace

std::optional<double> NcclRow::seconds() const {
  const auto value = parse_number(out_of_place.time);
  if (!value) return std::nullopt;
  return *value * (unit == TimeUnit::kMilliseconds ? 1e-3 : 1e-6);
}

NcclLog read_nccl_log(std::string_view text, const std::string& file) {
  if (const std::string_view begin = trim(text.substr(0, 4096)); begin.starts_with('{') && trim(begin.substr(1)).starts_with('"')) return read_nccl_json(text, file);  // logs may begin with a brace
  Reader reader;
  int number = 0;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    reader.line(text.substr(at, end - at), ++number);
    at = end + 1;
  }
  return reader.finish(file);
}

std::optional<NcclRanks> ranks_of(const NcclLog& log, std::size_t run) {
  std::set<std::int64_t> listed;
  for (const NcclDevice& device : log.runs[run].devices) listed.insert(device.rank);
  // A list that people cut shows as a gap.
  if (!listed.empty() && *listed.rbegin() + 1 == static_cast<std::int64_t>(listed.size())) {
    return NcclRanks{static_cast<std::int64_t>(listed.size()), false};
  }
  if (const auto n = ranks_by_ratio(log, run)) return NcclRanks{*n, true};
  if (!listed.empty()) return NcclRanks{*listed.rbegin() + 1, false};
  return std::nullopt;
}

}  // namespace stepcast::calibration
