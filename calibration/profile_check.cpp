#include "calibration/profile_check.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "calibration/kernel_fit.hpp"
#include "sim/base/text.hpp"
#include "sim/plan/names.hpp"
#include "sim/scenario/kinds.hpp"

namespace stepcast::calibration {
namespace {

std::vector<std::string> kernel_names() {
  std::vector<std::string> names;
  for (const KernelPart part : {KernelPart::kProducts, KernelPart::kFp8Products, KernelPart::kAttention, KernelPart::kAttentionBackward, KernelPart::kStreams, KernelPart::kReductions}) names.emplace_back(name_of(part));
  return names;
}

std::vector<std::string> range_names() {
  std::vector<std::string> names = kernel_names();
  for (const char* kind : plan::names<plan::CollectiveKind>())
    for (const char* place : {"inside a host", "between hosts"}) names.push_back(fmt::format("{} {}", kind, place));
  return names;
}

template <class T>
std::string text_of(const T& value) {
  if constexpr (scenario::IsQuantity<T>) {
    return scenario::print_quantity(scenario::to_base(value), scenario::DimensionOf<T>::value);
  } else {
    return fmt::format("{}", value);
  }
}

class Check {
 public:
  Check(const scenario::Positions& where, Diagnostics& diagnostics) : where_{where}, diagnostics_{diagnostics} {}

  void refuse(const std::string& path, const std::string& problem, const std::string& expected, const std::string& got = {}, const std::string& hint = {}) {
    diagnostics_.add(where_.error(path, problem, expected, got, hint));
  }

  // "fitted_on[1].least_work" and its fellow.
  template <class T>
  void ends(const std::string& path, const std::string& what, const std::optional<T>& least, const std::optional<T>& most) {
    const std::string low = path + ".least" + what;
    const std::string high = path + ".most" + what;
    if (least.has_value() != most.has_value()) {
      refuse(least ? low : high, fmt::format("{} is missing beside it", least ? "most" + what : "least" + what), "both ends of the range");
    } else if (least && *least > *most) {
      refuse(low, fmt::format("above {}", where_.cite(high)), "at most " + text_of(*most), text_of(*least));
    }
  }

  void once(const std::string& path, const std::string& what, const std::string& got) {
    const auto [first, fresh] = seen_.try_emplace(what, path);
    if (!fresh) refuse(path, fmt::format("given before ({})", where_.cite(first->second)), "each once", got);
  }

 private:
  const scenario::Positions& where_;
  Diagnostics& diagnostics_;
  std::map<std::string, std::string> seen_;
};

void check_ranges(const Profile& profile, Check& check) {
  const std::vector<std::string> known = range_names();
  const std::vector<std::string> kernels = kernel_names();
  for (std::size_t i = 0; i < profile.fitted_on.size(); ++i) {
    const FittedRange& range = profile.fitted_on[i];
    const std::string path = fmt::format("fitted_on[{}]", i);
    if (range.kernels.empty()) continue;  // refused by the reader
    if (std::find(known.begin(), known.end(), range.kernels) == known.end()) {
      const auto near = nearest_word(range.kernels, known);
      check.refuse(path + ".kernels", "nothing that forecasts ask for", one_of(kernels) + ", or a collective such as all_reduce between hosts", range.kernels,
                   near ? fmt::format("did you mean '{}'?", *near) : "");
      continue;
    }
    check.once(path + ".kernels", "range of " + range.kernels, range.kernels);
    check.ends(path, "_work", range.least_work, range.most_work);
    check.ends(path, "_bytes", range.least_bytes, range.most_bytes);
    check.ends(path, "_ranks", range.least_ranks, range.most_ranks);
    const bool moved = std::find(kernels.begin(), kernels.end(), range.kernels) == kernels.end() || range.kernels == "streams" || range.kernels == "reductions";
    const bool stated = moved ? range.least_bytes || range.most_bytes : range.least_work || range.most_work;
    if (!stated) check.refuse(path, fmt::format("no range of {}", range.kernels), moved ? "least_bytes and most_bytes" : "least_work and most_work");
  }
}

void check_tiles(const TileProfile& tiles, const std::string& path, Check& check) {
  if (tiles.rows.empty() || tiles.columns.empty() || tiles.largest_area == 0) return;  // refused by the reader
  const std::int64_t least = *std::min_element(tiles.rows.begin(), tiles.rows.end()) * *std::min_element(tiles.columns.begin(), tiles.columns.end());
  if (least > tiles.largest_area) check.refuse(path + ".largest_area", "no tile fits", fmt::format("at least {}, the smallest of rows by columns", least), fmt::format("{}", tiles.largest_area));
}

}  // namespace

std::string collective_range(plan::CollectiveKind kind, bool between_hosts) { return fmt::format("{} {}", plan::name_of(kind), between_hosts ? "between hosts" : "inside a host"); }

void check_profile(const Profile& profile, const scenario::Positions& where, Diagnostics& diagnostics) {
  Check check{where, diagnostics};
  check_tiles(profile.gemm.tiles, "gemm.tiles", check);
  check_tiles(profile.gemm.fp8_tiles, "gemm.fp8_tiles", check);
  check_ranges(profile, check);
  for (std::size_t i = 0; i < profile.costs.size(); ++i) {
    const MeasuredCost& cost = profile.costs[i];
    const std::string path = fmt::format("costs[{}]", i);
    check.ends(path, "", std::optional{cost.least}, std::optional{cost.most});
    if (!cost.what.empty()) check.once(path + ".what", "cost of " + cost.what, cost.what);
  }
  for (std::size_t i = 0; i < profile.interference.size(); ++i) {
    const Interference& slowed = profile.interference[i];
    if (!slowed.kernels) continue;
    const std::string what = fmt::format("{}, {} workers, beside {}", *slowed.kernels, slowed.workers.value_or(0), slowed.beside.value_or("themselves"));
    check.once(fmt::format("interference[{}]", i), what, what);
  }
}

}  // namespace stepcast::calibration
