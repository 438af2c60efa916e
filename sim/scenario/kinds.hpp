// sim/scenario/kinds.hpp — which C++ types a key may have, as the visitors see them.
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/scenario/node.hpp"
#include "sim/scenario/quantity.hpp"

namespace stepcast::scenario {

template <class T> struct OptionalOf : std::false_type {};
template <class T> struct OptionalOf<std::optional<T>> : std::true_type {};
template <class T> concept IsOptional = OptionalOf<T>::value;

template <class T> struct ListOf : std::false_type {};
template <class T> struct ListOf<std::vector<T>> : std::true_type {};
template <class T> concept IsList = ListOf<T>::value;

template <class T> struct MapOf : std::false_type {};
template <class T> struct MapOf<std::map<std::string, T>> : std::true_type {};
template <class T> concept IsMap = MapOf<T>::value;

template <class T> concept IsWord = std::is_enum_v<T>;
template <class T> concept IsWhole = std::same_as<T, std::int64_t> || std::same_as<T, std::int32_t>;

template <class T> struct DimensionOf {};
template <> struct DimensionOf<Duration> { static constexpr Dimension value = Dimension::kDuration; };
template <> struct DimensionOf<Bytes> { static constexpr Dimension value = Dimension::kBytes; };
template <> struct DimensionOf<Bandwidth> { static constexpr Dimension value = Dimension::kBandwidth; };
template <> struct DimensionOf<Flops> { static constexpr Dimension value = Dimension::kFlops; };
template <> struct DimensionOf<FlopRate> { static constexpr Dimension value = Dimension::kFlopRate; };
template <> struct DimensionOf<Frequency> { static constexpr Dimension value = Dimension::kFrequency; };
template <> struct DimensionOf<Power> { static constexpr Dimension value = Dimension::kPower; };
template <> struct DimensionOf<Energy> { static constexpr Dimension value = Dimension::kEnergy; };
template <> struct DimensionOf<Temperature> { static constexpr Dimension value = Dimension::kTemperature; };
template <> struct DimensionOf<Money> { static constexpr Dimension value = Dimension::kMoney; };
template <class T> concept IsQuantity = requires { DimensionOf<T>::value; };

// A quoted figure: value, kind of evidence, where it stands.
template <class T> concept IsFigure = requires(T t) { t.value; t.basis; t.source; };
// One that may also say how far off it may be, and since when it is known.
template <class T> concept IsDatedFigure = IsFigure<T> && requires(T t) { t.plus_minus; t.date; };

// Base units of quantity.hpp, to and from the strong types.
inline double to_base(Duration value) { return static_cast<double>(value.count()); }
inline double to_base(Bytes value) { return value.si(); }
template <class Tag> double to_base(Quantity<Tag> value) { return value.si(); }

// Hands the words of an enum to `use(text, value)`.
template <IsWord E, class Use>
void for_each_word(Use use) {
  for (const auto& [text, value] : enum_words(E{})) use(std::string{text}, value);
}

}  // namespace stepcast::scenario
