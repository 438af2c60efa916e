// An installed tree can be moved: it finds its data beside itself.
#include <doctest/doctest.h>

#include "tests/support/program.hpp"

using stepcast::test::Outcome;
using stepcast::test::run_shell;
using stepcast::test::TemporaryDirectory;

TEST_SUITE_BEGIN("e2e");

TEST_CASE("install: the tree is relocatable and complete") {
  const TemporaryDirectory place;
  const Outcome install = run_shell("cmake --install '" + std::string{STEPCAST_BUILD_DIR} + "' --prefix '" +
                                    (place.path() / "first").string() + "'");
  REQUIRE_MESSAGE(install.status == 0, install.err);
  std::filesystem::rename(place.path() / "first", place.path() / "moved");
  const std::filesystem::path moved = place.path() / "moved";
  const std::string program = "'" + (moved / "bin" / "stepcast").string() + "' ";
  CHECK(run_shell(program + "--version", "/").status == 0);
  // Catalogue, profiles and examples come along.
  const Outcome forecast = run_shell(program + "simulate ../share/stepcast/configs/quickstart.yaml", moved / "bin");
  CHECK_MESSAGE(forecast.status == 0, forecast.err);
  CHECK(run_shell(program + "man", "/").out == stepcast::test::text_of(moved / "share" / "man" / "man1" / "stepcast.1"));
  CHECK(run_shell(program + "completion bash", "/").out ==
        stepcast::test::text_of(moved / "share" / "bash-completion" / "completions" / "stepcast"));
  CHECK(std::filesystem::is_directory(moved / "share" / "stepcast" / "topologies"));
}

TEST_SUITE_END();
