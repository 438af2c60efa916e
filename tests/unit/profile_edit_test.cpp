// New figures in a profile's text: lines change, the rest stays as a person wrote it.
#include <doctest/doctest.h>

#include "calibration/profile_edit.hpp"
#include "sim/base/diagnostic.hpp"

using namespace stepcast;
using namespace stepcast::calibration;

TEST_SUITE_BEGIN("unit");

namespace {

const char* const kWritten =
    "# A GPU that nobody built.\n"
    "name: paper\n"
    "gemm:\n"
    "  # by eye\n"
    "  mma_efficiency: {value: 0.5, basis: assumed, source: \"a guess\"}\n"
    "  tile_overhead: {value: 1 us, basis: assumed, source: \"a guess\"}\n"
    "\n"
    "attention:\n"
    "  tail_share: {value: 0.1, basis: assumed, source: \"a guess\"}\n"
    "  mma_efficiency: {value: 0.4, basis: assumed, source: \"a guess\"}\n";

const char* const kFitted =
    "name: paper\n"
    "gemm:\n"
    "  mma_efficiency: {value: 0.8, basis: measured, source: fit}\n"
    "  tile_overhead: {value: 2 us, basis: measured, source: fit}\n"
    "attention:\n"
    "  mma_efficiency: {value: 0.7, basis: measured, source: fit}\n"
    "  engine_overhead: {value: 9 us, basis: measured, source: fit}\n";

}  // namespace

TEST_CASE("profile edit: named figures change, are added to their section, and go where the fit dropped them") {
  CHECK(with_figure_lines(kWritten, kFitted, {"gemm.mma_efficiency", "attention.engine_overhead", "attention.tail_share"}) ==
        "# A GPU that nobody built.\n"
        "name: paper\n"
        "gemm:\n"
        "  # by eye\n"
        "  mma_efficiency: {value: 0.8, basis: measured, source: fit}\n"
        "  tile_overhead: {value: 1 us, basis: assumed, source: \"a guess\"}\n"
        "\n"
        "attention:\n"
        "  mma_efficiency: {value: 0.4, basis: assumed, source: \"a guess\"}\n"
        "  engine_overhead: {value: 9 us, basis: measured, source: fit}\n");
}

TEST_CASE("profile edit: done twice it changes nothing more") {
  const std::vector<std::string> keys{"gemm.mma_efficiency", "attention.engine_overhead", "attention.tail_share"};
  const std::string once = with_figure_lines(kWritten, kFitted, keys);
  CHECK(with_figure_lines(once, kFitted, keys) == once);
  const std::string section = "gemm:\n  mma_efficiency: {value: 0.9, basis: assumed, source: x}\n";
  CHECK(with_section(with_section(kWritten, section), section) == with_section(kWritten, section));
}

TEST_CASE("profile edit: a figure of a section that is not there is refused") {
  CHECK_THROWS_AS(with_figure_lines(kWritten, kFitted, {"clock.sustained_fraction"}), UserError);
}

TEST_CASE("profile edit: a section takes the place of the old one, or the end") {
  CHECK(with_section("a: 1\nb:\n  x: 1\n  y: 2\n\nc: 3\n", "b:\n  x: 5\n") == "a: 1\nb:\n  x: 5\n\nc: 3\n");
  CHECK(with_section("a: 1\n", "b:\n  x: 5\n") == "a: 1\nb:\n  x: 5\n");
}

TEST_CASE("profile edit: a section by its name, as it goes into another text") {
  CHECK(section_of("a: 1\nb:\n  x: 1\n  y: 2\n\nc: 3\n", "b") == "b:\n  x: 1\n  y: 2\n");
  CHECK(section_of("a: 1\nb: []\nc: 3\n", "b") == "b: []\n");
  CHECK(section_of("a: 1\n", "b").empty());
}

TEST_CASE("profile edit: lines at the margin by key") {
  CHECK(with_margin_lines("# net\nname: n\nlatency: 1\n", "latency: 2\nhop: 3\n") == "# net\nname: n\nlatency: 2\nhop: 3\n");
  const std::string published = "hop: {value: 1 us, basis: published, source: a}\n";
  CHECK(with_margin_lines(published, "hop: {value: 2 us, basis: assumed, source: b}\n") == published);
  CHECK(with_margin_lines(published, "hop: {value: 2 us, basis: measured, source: b}\n") == "hop: {value: 2 us, basis: measured, source: b}\n");
}

TEST_SUITE_END();
