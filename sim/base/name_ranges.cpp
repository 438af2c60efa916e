#include "sim/base/name_ranges.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

namespace stepcast {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// One name with its brackets: the product of its pieces.
class Expansion {
 public:
  Expansion(std::string_view text, std::size_t most) : text_{text}, most_{most} {}

  NameList run() {
    while (!list_.error) {
      one();
      if (list_.error || at_ >= text_.size()) break;
      ++at_;  // the comma
      if (at_ >= text_.size()) fail(at_, "a name is missing after the comma");
    }
    if (list_.error) list_.names.clear();
    return std::move(list_);
  }

 private:
  void fail(std::size_t offset, std::string problem) {
    if (!list_.error) list_.error = {offset, std::move(problem)};
  }

  void one() {
    const std::size_t begin = at_;
    std::vector<std::string> built{""};
    while (at_ < text_.size() && text_[at_] != ',' && !list_.error) {
      if (text_[at_] == ']') return fail(at_, "']' without '['");
      if (text_[at_] != '[') {
        for (std::string& name : built) name += text_[at_];
        ++at_;
        continue;
      }
      const std::vector<std::string> pieces = bracket();
      if (list_.error) return;
      if (built.size() * pieces.size() + list_.names.size() > most_) return fail(begin, fmt::format("more than {} names", most_));
      std::vector<std::string> longer;
      longer.reserve(built.size() * pieces.size());
      for (const std::string& name : built)
        for (const std::string& piece : pieces) longer.push_back(name + piece);
      built = std::move(longer);
    }
    if (at_ == begin) return fail(at_, "a name is missing");
    if (built.size() + list_.names.size() > most_) return fail(begin, fmt::format("more than {} names", most_));
    list_.names.insert(list_.names.end(), built.begin(), built.end());
  }

  std::vector<std::string> bracket() {
    const std::size_t open = at_++;
    std::vector<std::string> pieces;
    while (true) {
      const std::string_view low = number();
      if (list_.error) return {};
      if (at_ < text_.size() && text_[at_] == '-') {
        const std::size_t dash = at_++;
        const std::string_view high = number();
        if (list_.error) return {};
        std::uint64_t from = 0;
        std::uint64_t to = 0;
        std::from_chars(low.data(), low.data() + low.size(), from);
        std::from_chars(high.data(), high.data() + high.size(), to);
        if (to < from) {
          fail(dash, fmt::format("the range {}-{} goes down", low, high));
          return {};
        }
        if (to - from >= most_) {
          fail(dash, fmt::format("more than {} names", most_));
          return {};
        }
        for (std::uint64_t i = from; i <= to; ++i) pieces.push_back(fmt::format("{:0{}}", i, low.size()));
      } else {
        pieces.emplace_back(low);
      }
      if (at_ >= text_.size()) break;
      const char next = text_[at_++];
      if (next == ']') return pieces;
      if (next != ',') break;
    }
    fail(open, "'[' without ']'");
    return {};
  }

  std::string_view number() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    constexpr std::size_t kMostDigits = 18;  // fits 64 bits
    if (at_ == begin || at_ - begin > kMostDigits) fail(begin, "a number is expected in brackets");
    return text_.substr(begin, at_ - begin);
  }

  std::string_view text_;
  std::size_t most_;
  std::size_t at_ = 0;
  NameList list_;
};

// A name parted at one of its numbers.
struct Parted {
  std::string_view front;
  std::string_view digits;
  std::string_view back;
};

std::vector<Parted> partings(std::string_view name) {
  std::vector<Parted> all;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (!is_digit(name[i]) || (i > 0 && is_digit(name[i - 1]))) continue;
    std::size_t end = i;
    while (end < name.size() && is_digit(name[end])) ++end;
    if (end - i <= 18) all.push_back({name.substr(0, i), name.substr(i, end - i), name.substr(end)});
  }
  return all;
}

// The name after this one when the number goes up by one.
std::string next_name(const Parted& p) {
  std::uint64_t value = 0;
  std::from_chars(p.digits.data(), p.digits.data() + p.digits.size(), value);
  return fmt::format("{}{:0{}}{}", p.front, value + 1, p.digits.size(), p.back);
}

}  // namespace

NameList expand_names(std::string_view text, std::size_t most) { return Expansion{text, most}.run(); }

std::string compress_names(std::span<const std::string> names) {
  std::string text;
  for (std::size_t i = 0; i < names.size();) {
    std::size_t longest = 1;
    std::string piece = names[i];
    for (const Parted& first : partings(names[i])) {
      std::size_t run = 1;
      std::string last{first.digits};
      for (std::string want = next_name(first); i + run < names.size() && names[i + run] == want; ++run) {
        const std::size_t digits = want.size() - first.front.size() - first.back.size();
        last = want.substr(first.front.size(), digits);
        want = next_name({std::string_view{want}.substr(0, first.front.size()), last,
                          std::string_view{names[i]}.substr(names[i].size() - first.back.size())});
      }
      if (run <= longest) continue;
      longest = run;
      piece = fmt::format("{}[{}-{}]{}", first.front, first.digits, last, first.back);
    }
    text += (text.empty() ? "" : ",") + piece;
    i += longest;
  }
  return text;
}

}  // namespace stepcast
