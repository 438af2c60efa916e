// sim/plan/names.hpp — the words of the plan's enumerations: printer, file form and reader share one
// table, so what is written is what is read. name_of() of each type is declared beside the type.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "sim/plan/plan.hpp"

namespace stepcast::plan {

// All words of an enumeration, by value: names<Stage>()[i] is name_of(static_cast<Stage>(i)).
template <class Enum>
std::span<const char* const> names();

template <> std::span<const char* const> names<Dtype>();
template <> std::span<const char* const> names<OpClass>();
template <> std::span<const char* const> names<Pass>();
template <> std::span<const char* const> names<Stage>();
template <> std::span<const char* const> names<Purpose>();
template <> std::span<const char* const> names<CollectiveKind>();
template <> std::span<const char* const> names<CopyKind>();
template <> std::span<const char* const> names<StreamKind>();
template <> std::span<const char* const> names<Memory>();
template <> std::span<const char* const> names<Category>();
template <> std::span<const char* const> names<Axis>();
template <> std::span<const char* const> names<VolumeForm>();

// The words of Body's alternatives, by index.
std::span<const char* const> opcodes();

template <class Enum>
std::optional<Enum> from_name(std::string_view word) {
  const auto words = names<Enum>();
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (word == words[i]) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace stepcast::plan
