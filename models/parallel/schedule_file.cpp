#include "models/parallel/schedule_file.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include <fmt/format.h>

#include "models/parallel/timeline.hpp"
#include "sim/base/diagnostic.hpp"

namespace stepcast::parallel {
namespace {

struct Word {
  std::string text;
  std::int32_t column = 1;
};

std::vector<Word> words_of(const std::string& line) {
  std::vector<Word> words;
  std::size_t i = 0;
  while (i < line.size() && line[i] != '#') {
    if (std::isspace(static_cast<unsigned char>(line[i])) != 0) {
      ++i;
      continue;
    }
    const std::size_t start = i;
    while (i < line.size() && line[i] != '#' && std::isspace(static_cast<unsigned char>(line[i])) == 0) ++i;
    words.push_back({line.substr(start, i - start), static_cast<std::int32_t>(start + 1)});
  }
  return words;
}

std::optional<std::int64_t> digits(const std::string& text) {
  if (text.empty() || text.size() > 6 || !std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; }))
    return std::nullopt;
  return std::stoll(text);
}

class Reader {
 public:
  Reader(const std::string& file, std::int32_t stages, std::int64_t micro_batches)
      : file_{file}, micro_batches_{micro_batches} {
    out_.placement = {Arrangement::kLinear, stages, 1};
    out_.lists.resize(static_cast<std::size_t>(stages));
    lines_.resize(out_.lists.size(), 0);
  }

  WrittenSchedule read(const std::string& text) && {
    std::size_t start = 0;
    while (start < text.size()) {
      const std::size_t end = std::min(text.find('\n', start), text.size());
      ++line_;
      read_line(words_of(text.substr(start, end - start)));
      start = end + 1;
    }
    for (std::size_t stage = 0; stage < lines_.size(); ++stage) {
      if (lines_[stage] == 0) fail(1, 1, fmt::format("stage {} has no list", stage), fmt::format("a line 'stage {}: ...'", stage));
      check_complete(stage);
    }
    const Timeline timeline = play(out_.lists, out_.placement);
    if (timeline.deadlock) {
      fail(1, 1, "the stages wait for each other for ever", "lists in which every pass finds what it needs", *timeline.deadlock);
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(std::int32_t line, std::int32_t column, std::string problem, std::string expected,
                         std::string got = {}) const {
    throw UserError(Diagnostic{.where = {file_, line, column}, .path = "parallel.schedule_file", .problem = std::move(problem),
                               .expected = std::move(expected), .got = std::move(got), .hint = {}});
  }

  void read_line(const std::vector<Word>& words) {
    if (words.empty()) return;
    if (words[0].text == "placement") return read_placement(words);
    if (words[0].text != "stage" || words.size() < 2)
      fail(line_, words[0].column, "not a line of a schedule", "'placement NAME' or 'stage N: F0 B0 ...'", words[0].text);
    std::string number = words[1].text;
    if (!number.empty() && number.back() == ':') number.pop_back();
    const auto stage = digits(number);
    if (!stage || *stage >= static_cast<std::int64_t>(lines_.size()))
      fail(line_, words[1].column, "no such stage", fmt::format("0 to {} (parallel.pp)", lines_.size() - 1), words[1].text);
    const auto index = static_cast<std::size_t>(*stage);
    if (lines_[index] != 0) fail(line_, words[1].column, fmt::format("stage {} has a list already, in line {}", index, lines_[index]), "one list a stage");
    lines_[index] = line_;
    for (std::size_t i = 2; i < words.size(); ++i) out_.lists[index].push_back(action_of(words[i]));
    tell_halves(out_.lists[index]);
  }

  void read_placement(const std::vector<Word>& words) {
    const std::string expected = "linear, interleaved with a number of chunks, v or dualpipe";
    const std::string name = words.size() > 1 ? words[1].text : "";
    Placement& p = out_.placement;
    if (std::any_of(lines_.begin(), lines_.end(), [](std::int32_t line) { return line != 0; }))
      fail(line_, words[0].column, "the placement comes too late", "a line before the first stage");
    if (name == "linear" && words.size() == 2) return;
    if (name == "v" && words.size() == 2) {
      p.arrangement = Arrangement::kV;
      p.chunks = 2;
    } else if (name == "dualpipe" && words.size() == 2 && p.stages % 2 == 0) {
      p.arrangement = Arrangement::kDual;
      p.chunks = 2;
    } else if (name == "interleaved" && words.size() == 3 && digits(words[2].text).value_or(0) >= 2 && digits(words[2].text) <= 255 && p.stages > 1) {
      p.arrangement = Arrangement::kInterleaved;
      p.chunks = static_cast<std::int32_t>(*digits(words[2].text));
    } else {
      fail(line_, words[0].column, "no such placement for these stages", expected, name);
    }
  }

  Pass pass_of(const std::string& text, std::int32_t column) const {
    const std::string expected = "F, B or W, a micro-batch, and .chunk where it is not 0, as F3 or B0.1";
    const std::size_t dot = text.find('.');
    const auto micro_batch = digits(text.substr(std::min<std::size_t>(1, text.size()), dot == std::string::npos ? dot : dot - 1));
    const auto chunk = dot == std::string::npos ? std::optional<std::int64_t>{0} : digits(text.substr(dot + 1));
    const bool known = !text.empty() && (text[0] == 'F' || text[0] == 'B' || text[0] == 'W');
    if (!known || !micro_batch || !chunk) fail(line_, column, "not a pass", expected, text);
    if (*micro_batch >= micro_batches_)
      fail(line_, column, "no such micro-batch", fmt::format("0 to {} (batch.global / (parallel.dp x batch.micro) of them)", micro_batches_ - 1), text);
    if (*chunk >= out_.placement.chunks)
      fail(line_, column, "no such chunk", fmt::format("0 to {} (placement {})", out_.placement.chunks - 1, name_of(out_.placement.arrangement)), text);
    const ActionKind kind = text[0] == 'F' ? ActionKind::kForward : text[0] == 'B' ? ActionKind::kBackward : ActionKind::kBackwardWeight;
    return {kind, static_cast<std::uint8_t>(*chunk), static_cast<std::uint16_t>(*micro_batch)};
  }

  Action action_of(const Word& word) const {
    const std::size_t both = word.text.find('&');
    const Pass first = pass_of(word.text.substr(0, both), word.column);
    if (both == std::string::npos) return {first.kind, first.chunk, first.micro_batch};
    const Pass second = pass_of(word.text.substr(both + 1), word.column + static_cast<std::int32_t>(both) + 1);
    if (first.kind != ActionKind::kForward || second.kind != ActionKind::kBackward)
      fail(line_, word.column, "these two passes do not overlap", "a forward pass & a backward pass, as F4&B1.1", word.text);
    return {ActionKind::kOverlapped, first.chunk, first.micro_batch, second.chunk, second.micro_batch};
  }

  // B is the input's half where its W is listed.
  static void tell_halves(ActionList& list) {
    std::set<std::pair<std::uint8_t, std::uint16_t>> apart;
    for (const Action& a : list)
      if (a.kind == ActionKind::kBackwardWeight) apart.insert({a.chunk, a.micro_batch});
    for (Action& a : list)
      if (a.kind == ActionKind::kBackward && apart.contains({a.chunk, a.micro_batch})) a.kind = ActionKind::kBackwardInput;
  }

  void check_complete(std::size_t stage) const {
    std::map<std::pair<std::uint8_t, std::uint16_t>, std::array<int, 3>> seen;  // forward, input, weight
    const auto problem = [&](const std::string& what, const std::string& expected) {
      fail(lines_[stage], 1, fmt::format("stage {}: {}", stage, what), expected);
    };
    for (const Action& action : out_.lists[stage]) {
      for (const Pass& pass : Passes{action}) {
        auto& [forward, input, weight] = seen[{pass.chunk, pass.micro_batch}];
        const std::string name = to_text(Action{pass.kind, pass.chunk, pass.micro_batch});
        const bool again = (is_forward(pass) && forward > 0) || (gives_input_gradient(pass) && input > 0) || (gives_weight_gradient(pass) && weight > 0);
        if (again) problem(fmt::format("{} runs a second time", name), "every pass once");
        if (gives_input_gradient(pass) && forward == 0) problem(fmt::format("{} before its forward pass", name), "F, then B");
        if (pass.kind == ActionKind::kBackwardWeight && input == 0) problem(fmt::format("{} before its B", name), "B, then W");
        forward += is_forward(pass) ? 1 : 0;
        input += gives_input_gradient(pass) ? 1 : 0;
        weight += gives_weight_gradient(pass) ? 1 : 0;
      }
    }
    const bool dual = out_.placement.arrangement == Arrangement::kDual;
    for (std::int64_t k = 0; k < micro_batches_; ++k) {
      for (std::int32_t c = 0; c < out_.placement.chunks; ++c) {
        if (dual && (k < micro_batches_ / 2) != (c == 0)) continue;  // the other direction's
        const auto found = seen.find({static_cast<std::uint8_t>(c), static_cast<std::uint16_t>(k)});
        const std::array<int, 3> have = found == seen.end() ? std::array<int, 3>{} : found->second;
        for (std::size_t i = 0; i < 3; ++i) {
          if (have[i] == 0) problem(fmt::format("micro-batch {}{} has no {}", k, c == 0 ? "" : fmt::format(" of chunk {}", c), i == 0 ? "F" : i == 1 ? "B" : "W"),
                                    fmt::format("F and B (and W where they are apart) of micro-batches 0 to {}", micro_batches_ - 1));
        }
      }
    }
    if (dual && seen.size() != static_cast<std::size_t>(micro_batches_))
      problem("a micro-batch in the wrong direction", fmt::format("chunk 0: the first {} micro-batches, chunk 1: the others", micro_batches_ / 2));
  }

  const std::string& file_;
  std::int64_t micro_batches_;
  WrittenSchedule out_;
  std::vector<std::int32_t> lines_;  // [stage] of its list; 0: none
  std::int32_t line_ = 0;
};

}  // namespace

WrittenSchedule read_schedule(const std::string& text, const std::string& file, std::int32_t stages, std::int64_t micro_batches) {
  return Reader{file, stages, micro_batches}.read(text);
}

std::string write_schedule(const std::vector<ActionList>& lists, const Placement& placement) {
  std::string text = fmt::format("placement {}{}\n", name_of(placement.arrangement),
                                 placement.arrangement == Arrangement::kInterleaved ? fmt::format(" {}", placement.chunks) : "");
  for (std::size_t stage = 0; stage < lists.size(); ++stage) {
    text += fmt::format("stage {}:", stage);
    for (const Action& action : lists[stage]) text += " " + to_text(action);
    text += '\n';
  }
  return text;
}

}  // namespace stepcast::parallel
