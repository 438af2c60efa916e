#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstring>
#include <iostream>

#include "executor/cuda/check.hpp"
#include "tests/support/arguments.hpp"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments = stepcast::test::doctest_arguments(argc, argv);
  doctest::Context context{argc, stepcast::test::pointers_to(arguments).data()};
  for (int i = 1; i < argc; ++i) {
    if (std::strstr(argv[i], "list-test") != nullptr || std::strcmp(argv[i], "-ltc") == 0) return context.run();
  }
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) {
    std::cout << "skipped: no GPU is here\n";
    return 77;
  }
  return context.run();
}
