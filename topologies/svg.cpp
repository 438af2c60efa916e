#include "topologies/svg.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/base/text.hpp"

namespace stepcast::topology {

namespace {

constexpr double kCharacter = 6.4;  // width of one at 11 px sans-serif, on the wide side

std::string escaped(std::string_view words) {
  std::string out;
  for (const char c : words) {
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else out += c;
  }
  return out;
}

constexpr std::string_view kStyle = R"(<style>
text { font: 11px sans-serif; fill: #222; }
.title { font: bold 15px sans-serif; }
.head { font: bold 12px sans-serif; }
.note { fill: #555; }
.label { text-anchor: middle; }
line { stroke: #9aa5b1; stroke-width: 1; }
line.strong { stroke: #5b7083; stroke-width: 2; }
line.nvlink { stroke: #5a9e3a; stroke-width: 1.6; }
line.rail { stroke: #c3ccd5; }
rect { stroke: #44525f; stroke-width: 1; }
.core { fill: #e3d4f0; } .spine { fill: #d4e0f5; } .leaf { fill: #cfeaf0; } .node { fill: #f3f0e2; }
.gpu { fill: #d5eccb; } .nic { fill: #cfeaf0; } .nvswitch { fill: #b9dca8; } .pcie { fill: #f6e3c8; } .root { fill: #f0d0c8; } .memory { fill: #ece8e8; }
.page { fill: #ffffff; stroke: none; }
.more { fill: #ffffff; stroke-dasharray: 3 3; }
</style>
)";

}  // namespace

void Svg::line(double x1, double y1, double x2, double y2, std::string_view style) {
  lines_ += fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", style, x1, y1, x2, y2);
}

void Svg::box(const Box& box, std::string_view label, std::string_view style) {
  boxes_ += fmt::format("<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"3\"/>\n", style,
                        box.x - box.width / 2, box.y, box.width, box.height);
  const auto room = static_cast<std::size_t>(std::max(1.0, (box.width - 4) / kCharacter));
  const std::vector<std::string> rows = split(label, '\n');
  double baseline = box.y + box.height / 2 + 4 - 6.0 * (static_cast<double>(rows.size()) - 1);
  for (const std::string& row : rows) {
    const std::string shown = row.size() <= room ? row : row.substr(0, room - 1) + "\xE2\x80\xA6";
    boxes_ += fmt::format("<text class=\"label\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", box.x, baseline, escaped(shown));
    baseline += 12.0;
  }
}

void Svg::text(double x, double y, std::string_view words, std::string_view style) {
  boxes_ += fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", style, x, y, escaped(words));
}

std::string Svg::finish(double width, double height) const {
  return fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\">\n"
                     "<rect x=\"0\" y=\"0\" width=\"{0:.0f}\" height=\"{1:.0f}\" class=\"page\"/>\n{2}{3}{4}</svg>\n",
                     width, height, kStyle, lines_, boxes_);
}

}  // namespace stepcast::topology
