// sim/base/text.hpp — small text helpers: nearest word, human-readable units.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"

namespace stepcast {

// The candidate within edit distance max(2, len/3) that is closest to `word`; ties go to the first
// in alphabetical order. Empty when nothing is near.
std::optional<std::string> nearest_word(std::string_view word, std::span<const std::string> candidates);

// "one of a, b, c" in sorted order.
std::string one_of(std::span<const std::string> words);

std::vector<std::string> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);
std::string join(std::span<const std::string> parts, std::string_view separator);

// Three significant figures and a unit a person would use: "12.4 GiB", "3.21 ms", "400 Gb/s".
std::string human_bytes(Bytes bytes);
std::string human_duration(Duration duration);
std::string human_seconds(double seconds);
std::string human_bit_rate(Bandwidth bandwidth);
std::string human_count(double count);  // 8.03 B, 405 M, 12.1 k

// Strict: the whole text must be one finite decimal number (no inf, nan, hex, leading zeros like 010).
std::optional<double> parse_number(std::string_view text);

}  // namespace stepcast
