// tests/support/mpi.hpp — whether runs over MPI can be tested here.
#pragma once

#include <cstdlib>

#include <doctest/doctest.h>

namespace stepcast::test {

// Says so where not.
inline bool has_mpi() {
  if (std::system("command -v mpirun > /dev/null 2>&1") == 0) return true;
  MESSAGE("skipped: mpirun is not installed");
  return false;
}

}  // namespace stepcast::test
