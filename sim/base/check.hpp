// sim/base/check.hpp — checks of our own invariants (never of user input; that is diagnostic.hpp).
// SIM_CHECK is always on: it prints the condition and the values that broke it, then aborts.
// SIM_DCHECK is for hot loops and vanishes in release builds.
#pragma once

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>

namespace stepcast {

[[noreturn]] inline void check_failed(const char* file, int line, const char* condition,
                                      const std::string& values) {
  std::fprintf(stderr, "%s:%d: internal error: %s does not hold%s%s\n", file, line, condition,
               values.empty() ? "" : ": ", values.c_str());
  std::abort();
}

// A value as text. No library: this header is everywhere, workers on machines without any included.
template <class Value>
std::string value_text(const Value& value) {
  if constexpr (std::is_same_v<Value, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_arithmetic_v<Value>) {
    char text[64] = {};
    std::to_chars(text, text + sizeof text - 1, value);
    return text;
  } else {
    return std::string{value};
  }
}

template <class... Values>
std::string join_values(const Values&... values) {
  std::string text;
  ((text += (text.empty() ? "" : ", ") + value_text(values)), ...);
  return text;
}

}  // namespace stepcast

#define SIM_CHECK(condition, ...)                                               \
  do {                                                                          \
    if (!(condition)) [[unlikely]]                                              \
      ::stepcast::check_failed(__FILE__, __LINE__, #condition,                  \
                               ::stepcast::join_values(__VA_ARGS__));           \
  } while (false)

#ifdef NDEBUG
#define SIM_DCHECK(condition, ...) \
  do {                             \
  } while (false)
#else
#define SIM_DCHECK(condition, ...) SIM_CHECK(condition __VA_OPT__(, ) __VA_ARGS__)
#endif
