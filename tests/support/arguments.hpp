// tests/support/arguments.hpp — the command line of a test program, as doctest is to read it.
#pragma once

#include <string>
#include <vector>

namespace stepcast::test {

// CMake asks for the suite of each test case, its label in ctest, by the case's bare name. doctest reads commas there as the ends of names.
inline std::vector<std::string> doctest_arguments(int argc, const char* const* argv) {
  std::vector<std::string> arguments{argv, argv + argc};
  bool asks_for_suites = false;
  for (const std::string& a : arguments) asks_for_suites = asks_for_suites || a == "--list-test-suites";
  if (!asks_for_suites) return arguments;
  for (std::string& a : arguments) {
    if (!a.starts_with("--test-case=")) continue;
    for (std::size_t comma = a.find(','); comma != std::string::npos; comma = a.find(',', comma + 2)) a.insert(comma, 1, '\\');
  }
  return arguments;
}

// What takes argc and argv.
inline std::vector<const char*> pointers_to(const std::vector<std::string>& arguments) {
  std::vector<const char*> pointers;
  for (const std::string& a : arguments) pointers.push_back(a.c_str());
  return pointers;
}

}  // namespace stepcast::test
