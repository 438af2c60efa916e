// sim/base/check.hpp — checks of our own invariants (never of user input; that is diagnostic.hpp).
// SIM_CHECK is always on: it prints the condition and the values that broke it, then aborts.
// SIM_DCHECK is for hot loops and vanishes in release builds.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include <fmt/format.h>

namespace stepcast {

[[noreturn]] inline void check_failed(const char* file, int line, const char* condition,
                                      const std::string& values) {
  std::fprintf(stderr, "%s:%d: internal error: %s does not hold%s%s\n", file, line, condition,
               values.empty() ? "" : ": ", values.c_str());
  std::abort();
}

template <class... Values>
std::string join_values(const Values&... values) {
  std::string text;
  ((text += (text.empty() ? "" : ", ") + fmt::format("{}", values)), ...);
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
