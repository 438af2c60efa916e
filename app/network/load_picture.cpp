#include "app/network/load_picture.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace stepcast::app {
namespace {

using topology::DeviceKind;

constexpr double kLeft = 24.0;
constexpr double kWidth = 960.0;
constexpr double kRowLabel = 150.0;
constexpr double kRowHeight = 14.0;
constexpr double kWidestCell = 28.0;
constexpr std::size_t kMostRows = 32;
constexpr std::size_t kMostCells = 256;

struct Cell {
  std::uint32_t slot = 0;
  double use = 0.0;
};
struct Row {
  std::string device;
  std::vector<Cell> cells;
  double most = 0.0;
};

bool is_switch(DeviceKind kind) { return kind == DeviceKind::kLeaf || kind == DeviceKind::kSpine || kind == DeviceKind::kCore; }

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  return out;
}

// White over yellow and orange to dark red.
std::string colour(double use) {
  constexpr std::array<std::array<double, 3>, 5> kStops{{{246, 246, 244}, {253, 226, 147}, {245, 158, 66}, {214, 69, 48}, {110, 16, 30}}};
  const double at = std::clamp(use, 0.0, 1.0) * (kStops.size() - 1);
  const auto low = std::min(static_cast<std::size_t>(at), kStops.size() - 2);
  const double part = at - static_cast<double>(low);
  std::array<int, 3> rgb{};
  for (std::size_t i = 0; i < 3; ++i) rgb[i] = static_cast<int>(std::lround(kStops[low][i] * (1 - part) + kStops[low + 1][i] * part));
  return fmt::format("#{:02x}{:02x}{:02x}", rgb[0], rgb[1], rgb[2]);
}

class Picture {
 public:
  Picture(const topology::LinkSlots& slots, const std::vector<double>& carried, double makespan_s)
      : slots_{slots}, carried_{carried}, makespan_s_{makespan_s} {}

  std::string draw(const std::string& title) {
    text(kLeft, 28, title, "title");
    scale();
    for (const bool network : {true, false}) {  // what lies inside hosts comes last
      for (const auto& [kinds, rows] : bands()) {
        if (network == (is_switch(kinds.first) || is_switch(kinds.second))) band(kinds, rows);
      }
    }
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\">\n"
               "<style>text{{font:12px sans-serif;fill:#222}}.title{{font:bold 16px sans-serif}}.head{{font:bold 13px sans-serif}}"
               ".small{{font:11px sans-serif;fill:#555}}rect{{stroke:#fff;stroke-width:.5}}</style>\n"
               "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
               kWidth + 2 * kLeft, y_ + 20) +
           body_ + "</svg>\n";
  }

 private:
  using Kinds = std::pair<DeviceKind, DeviceKind>;

  void text(double x, double y, const std::string& words, const char* style) {
    body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>\n", x, y, style, escaped(words));
  }

  void cell(double x, double y, double width, double use, const std::string& tip) {
    body_ += fmt::format("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" fill=\"{}\"><title>{}</title></rect>\n", x, y, width,
                         kRowHeight - 1, colour(use), escaped(tip));
  }

  void scale() {
    text(kLeft, 50, "use of a link: bytes carried / (capacity x makespan)", "small");
    constexpr int kSteps = 20;
    for (int i = 0; i < kSteps; ++i) cell(kLeft + 330 + i * 12.0, 40, 12, (i + 0.5) / kSteps, fmt::format("{} %", 5 * i));
    text(kLeft + 306, 51, "0 %", "small");
    text(kLeft + 330 + kSteps * 12 + 6, 51, "100 %", "small");
    y_ = 74;
  }

  // Tiers that carried something; rows by device.
  std::map<Kinds, std::vector<Row>> bands() const {
    std::map<Kinds, std::map<std::uint32_t, Row>> by_device;
    std::map<Kinds, double> total;
    for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
      if (!slots_.carries(slot)) continue;
      const double use = carried_[slot] / (slots_.capacity(slot) * makespan_s_);
      total[slots_.kinds(slot)] += use;
      Row& row = by_device[slots_.kinds(slot)][slots_.link(slot).from.value()];
      if (row.cells.empty()) row.device = slots_.name(slot).substr(0, slots_.name(slot).find(" -> "));
      row.cells.push_back({slot, use});
      row.most = std::max(row.most, use);
    }
    std::map<Kinds, std::vector<Row>> bands;
    for (auto& [kinds, rows] : by_device) {
      if (total[kinds] == 0.0) continue;
      for (auto& [device, row] : rows) bands[kinds].push_back(std::move(row));
    }
    return bands;
  }

  void band(const Kinds& kinds, std::vector<Row> rows) {
    const std::size_t all = rows.size();
    // Devices with one link each stand side by side.
    const bool single = std::all_of(rows.begin(), rows.end(), [](const Row& row) { return row.cells.size() == 1; });
    const std::size_t limit = single ? kMostCells : kMostRows;
    const bool cut = all > limit;
    if (cut) {  // the busiest rows, in the fabric's order
      std::vector<double> most;
      for (const Row& row : rows) most.push_back(row.most);
      std::nth_element(most.begin(), most.begin() + static_cast<std::ptrdiff_t>(limit), most.end(), std::greater<>{});
      const double bar = most[limit];
      std::stable_partition(rows.begin(), rows.end(), [&](const Row& row) { return row.most > bar; });
      rows.resize(limit);
    }
    text(kLeft, y_ + 12, fmt::format("{} -> {}{}", topology::device_kind_name(kinds.first), topology::device_kind_name(kinds.second),
                                     cut ? fmt::format(" (the busiest {} of {})", limit, all) : ""), "head");
    y_ += 20;
    std::size_t widest = single ? rows.size() : 0;
    for (const Row& row : rows) widest = std::max(widest, std::min(row.cells.size(), kMostCells));
    const double width = std::min(kWidestCell, (kWidth - kRowLabel) / static_cast<double>(widest));
    std::size_t column = 0;
    for (const Row& row : rows) {
      if (!single || column == 0) text(kLeft, y_ + 11, single && rows.size() > 1 ? rows.front().device + " ..." : row.device, "small");
      if (!single) column = 0;
      for (std::size_t i = 0; i < std::min(row.cells.size(), kMostCells); ++i) {
        const Cell& c = row.cells[i];
        cell(kLeft + kRowLabel + width * static_cast<double>(column++), y_, width, c.use,
             fmt::format("{}: {:.1f} %", slots_.name(c.slot), 100 * c.use));
      }
      if (!single) y_ += kRowHeight;
    }
    y_ += single ? kRowHeight + 16 : 16;
  }

  const topology::LinkSlots& slots_;
  const std::vector<double>& carried_;
  double makespan_s_;
  std::string body_;
  double y_ = 0.0;
};

}  // namespace

std::string draw_loads(const std::string& title, const topology::LinkSlots& slots, const std::vector<double>& carried, double makespan_s) {
  return Picture{slots, carried, makespan_s}.draw(title);
}

}  // namespace stepcast::app
