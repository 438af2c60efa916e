#include "app/cli/size_list.hpp"

#include <charconv>

#include "sim/base/diagnostic.hpp"
#include "sim/base/text.hpp"

namespace stepcast::app {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 50U;

[[noreturn]] void refuse(const std::string& problem, const std::string& got) {
  throw UserError(Diagnostic{.path = "--sizes", .problem = problem, .expected = "8..8G, or a list as 1M,4M,1G", .got = got});
}

std::int64_t one(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 1) refuse("no size", "'" + text + "'");
  const std::string unit{end, text.data() + text.size()};
  int shift = 0;
  if (unit == "K" || unit == "KiB") shift = 10;
  else if (unit == "M" || unit == "MiB") shift = 20;
  else if (unit == "G" || unit == "GiB") shift = 30;
  else if (!unit.empty() && unit != "B") refuse("unknown unit", "'" + unit + "'");
  if (value > (kMost >> shift)) refuse("too large", "'" + text + "'");
  return value << shift;
}

}  // namespace

std::vector<Bytes> read_sizes(const std::string& text, std::int64_t factor) {
  std::vector<Bytes> sizes;
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) {
    for (const std::string& part : split(text, ',')) sizes.emplace_back(one(std::string{trim(part)}));
    return sizes;
  }
  const std::int64_t last = one(text.substr(dots + 2));
  std::int64_t size = one(text.substr(0, dots));
  if (size > last) refuse("the range ends below its start", "'" + text + "'");
  for (; size <= last; size *= factor) sizes.emplace_back(size);
  return sizes;
}

}  // namespace stepcast::app
