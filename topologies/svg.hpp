// topologies/svg.hpp — the few SVG shapes the picture needs. Lines are drawn beneath boxes.
#pragma once

#include <string>
#include <string_view>

namespace stepcast::topology {

struct Box {
  double x = 0.0;  // centre
  double y = 0.0;  // top
  double width = 0.0;
  double height = 0.0;
  [[nodiscard]] double bottom() const { return y + height; }
};

class Svg {
 public:
  void line(double x1, double y1, double x2, double y2, std::string_view style);  // style: a CSS class
  // A label of one or two rows; a row is shortened with an ellipsis where the box is too narrow for it.
  void box(const Box& box, std::string_view label, std::string_view style);
  void text(double x, double y, std::string_view words, std::string_view style);
  [[nodiscard]] std::string finish(double width, double height) const;

 private:
  std::string lines_;
  std::string boxes_;
};

}  // namespace stepcast::topology
