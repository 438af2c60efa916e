// calibration/profile_parameters.hpp — the scalar figures of a profile by key path, for fits, uncertainty
// bands and `stepcast profile`. They are found through the key lists that read the profile, so a new figure
// needs nothing here; a catalogue entry (topologies/catalogue_keys.hpp) works as well.
// Symbols  value, plus_minus in SI units (seconds, bytes, B/s, FLOP/s, Hz, W; 1 where there is none)
// Model    plus_minus: as the figure states it, else r |value| with r by its basis                      (1)
//            measured 5 %, datasheet 2 %, published 10 %, assumed 30 %
// Source   (1) judgement, not a fit: a repeated kernel measurement spreads by 2 to 38 % between collections
//          (../shared/kernels/README.md), a data sheet's rate is met or not within its last digit, a quoted
//          figure was measured on another machine, an assumed one is right in its leading digit at best
// Valid    one standard deviation of a figure alone
// Ignores  that figures of one fit are correlated: their errors partly cancel in forecasts
// Tests    unit/profile_parameters_test
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "calibration/profile.hpp"
#include "sim/scenario/kinds.hpp"
#include "topologies/hardware.hpp"

namespace stepcast::calibration {

struct ProfileParameter {
  std::string key;               // gemm.mma_efficiency
  double value = 0;
  std::string text;              // "1.87 us", as a profile's file has it
  std::string unit;              // "s", "B", "B/s", "FLOP/s", "Hz", "W", ...; "1"
  topology::Basis basis = topology::Basis::kAssumed;
  std::string source;
  std::optional<std::string> date;
  double plus_minus = 0;
  bool whole = false;            // a count
  bool stated = false;           // plus_minus is the figure's own, else by its basis
  double low = 0;                // what the key allows
  double high = std::numeric_limits<double>::infinity();

  // The nearest value that the key allows.
  [[nodiscard]] double within(double wanted) const { return std::clamp(wanted, low, high); }
};

// r of (1).
double relative_uncertainty(topology::Basis basis);

namespace detail {

std::string unit_of(scenario::Dimension dimension);  // of the SI value
std::string number_text(double value);

template <class T>
double si_of(const T& value) {
  if constexpr (std::is_same_v<T, Duration>) return value.seconds();
  else if constexpr (scenario::IsQuantity<T>) return scenario::to_base(value);
  else return static_cast<double>(value);
}

template <class T>
T from_si(double si) {
  if constexpr (std::is_same_v<T, Duration>) return Duration::from_seconds(si);
  else if constexpr (std::is_same_v<T, Bytes>) return Bytes{std::llround(si)};
  else if constexpr (scenario::IsQuantity<T>) return T::from_si(si);
  else if constexpr (std::is_integral_v<T>) return static_cast<T>(std::llround(si));
  else return si;
}

template <class T>
std::string text_of(const T& value) {
  if constexpr (scenario::IsQuantity<T>) return scenario::print_quantity(scenario::to_base(value), scenario::DimensionOf<T>::value);
  else return number_text(static_cast<double>(value));
}

// Calls use(key path, figure, rule) for each figure, those of sections and of set optionals included.
template <class Use>
class FigureVisitor {
 public:
  FigureVisitor(Use& use, std::string prefix) : use_{use}, prefix_{std::move(prefix)} {}

  template <class T>
  void key(const char* name, T& member, const char* sentence, const scenario::Rule& rule = {}) {
    if constexpr (scenario::IsOptional<T>) {
      if (member) key(name, *member, sentence, rule);
    } else if constexpr (scenario::IsFigure<T>) {
      use_(prefix_ + name, member, rule);
    } else if constexpr (std::is_class_v<T> && requires { member.visit(std::declval<FigureVisitor&>()); }) {
      FigureVisitor inner{use_, prefix_ + name + '.'};
      member.visit(inner);
    }
  }

 private:
  Use& use_;
  std::string prefix_;
};

template <class T, class Use>
void for_each_figure(T& object, Use use) {
  FigureVisitor<Use> visitor{use, ""};
  scenario::visit_struct(visitor, object);
}

}  // namespace detail

// In the order of the file.
template <class T>
std::vector<ProfileParameter> parameters_of(T object) {
  std::vector<ProfileParameter> list;
  detail::for_each_figure(object, [&]<class F>(const std::string& key, const F& figure, const scenario::Rule& rule) {
    using V = std::remove_cvref_t<decltype(figure.value)>;
    ProfileParameter p{.key = key, .value = detail::si_of(figure.value), .text = detail::text_of(figure.value), .unit = "1",
                       .basis = figure.basis, .source = figure.source, .date = figure.date};
    if constexpr (scenario::IsQuantity<V>) p.unit = detail::unit_of(scenario::DimensionOf<V>::value);
    p.whole = std::is_integral_v<V>;
    p.stated = figure.plus_minus.has_value();
    p.plus_minus = p.stated ? detail::si_of(*figure.plus_minus) : relative_uncertainty(p.basis) * std::abs(p.value);
    p.low = std::max(0.0, rule.low);
    p.high = rule.high;
    list.push_back(std::move(p));
  });
  return list;
}

// Gives `use` the figure of that key to change; false: there is none.
template <class T, class Use>
bool change_figure(T& object, const std::string& key, Use use) {
  bool found = false;
  detail::for_each_figure(object, [&]<class F>(const std::string& path, F& figure, const scenario::Rule&) {
    if (path != key) return;
    use(figure);
    found = true;
  });
  return found;
}

// Replaces the value alone [SI]; false: there is no such figure. Requires a value within its bounds.
template <class T>
bool set_parameter(T& object, const std::string& key, double value) {
  return change_figure(object, key, [&]<class F>(F& figure) {
    figure.value = detail::from_si<std::remove_cvref_t<decltype(figure.value)>>(value);
  });
}

template <class T>
std::optional<double> parameter_value(T object, const std::string& key) {
  std::optional<double> value;
  change_figure(object, key, [&]<class F>(F& figure) { value = detail::si_of(figure.value); });
  return value;
}

// A fitted or quoted figure in place of the one that is there.
struct NewFigure {
  double value = 0;
  topology::Basis basis = topology::Basis::kMeasured;
  std::string source;
  std::optional<double> plus_minus;
  std::optional<std::string> date;
};
template <class T>
bool replace_figure(T& object, const std::string& key, const NewFigure& with) {
  return change_figure(object, key, [&]<class F>(F& figure) {
    using V = std::remove_cvref_t<decltype(figure.value)>;
    figure.value = detail::from_si<V>(with.value);
    figure.basis = with.basis;
    figure.source = with.source;
    figure.plus_minus.reset();
    if (with.plus_minus) figure.plus_minus = detail::from_si<V>(*with.plus_minus);
    figure.date = with.date;
  });
}

}  // namespace stepcast::calibration
