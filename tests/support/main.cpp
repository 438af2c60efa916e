// The main of every test program but those on GPUs.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "tests/support/arguments.hpp"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments = stepcast::test::doctest_arguments(argc, argv);
  return doctest::Context{argc, stepcast::test::pointers_to(arguments).data()}.run();
}
