// What a profile's figures must be to each other: refused with the key's place.
#include <doctest/doctest.h>

#include <string>

#include "calibration/profile.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"
#include "tests/support/source_dir.hpp"

using namespace stepcast;
using namespace stepcast::calibration;

TEST_SUITE_BEGIN("unit");

namespace {

const std::string kGeneric = read_file(STEPCAST_SOURCE_DIR "/calibration/profiles/generic.yaml");

// The profile `generic` with these lines at its end, where it has no such section.
std::string errors_of(const std::string& lines) {
  Diagnostics diagnostics;
  read_profile_text(kGeneric + lines, "p.yaml", diagnostics);
  return render(diagnostics.list());
}

// With another value in the place of what follows `key`.
std::string errors_with(const std::string& key, const std::string& from, const std::string& to) {
  std::string text = kGeneric;
  const std::size_t at = text.find(key + from);
  REQUIRE(at != std::string::npos);
  text.replace(at, key.size() + from.size(), key + to);
  Diagnostics diagnostics;
  read_profile_text(text, "p.yaml", diagnostics);
  return render(diagnostics.list());
}

std::string range(const std::string& kernels, const std::string& ends) { return "  - {kernels: " + kernels + ", points: 3, " + ends + "}\n"; }

void refused(const std::string& lines, const std::string& words) {
  CAPTURE(lines);
  const std::string errors = errors_of(lines);
  CHECK_MESSAGE(errors.find(words) != std::string::npos, errors);
  CHECK(errors.starts_with("p.yaml:"));
}

}  // namespace

TEST_CASE("profile check: ranges in order, once each, of kernels and collectives that there are") {
  CHECK(errors_of("fitted_on:\n" + range("products", "least_work: 1 GFLOP, most_work: 2 TFLOP") + range("streams", "least_bytes: 0, most_bytes: 1 GiB") +
                  range("all_reduce between hosts", "least_bytes: 8 B, most_bytes: 8 B, least_ranks: 2, most_ranks: 2"))
            .empty());
}

TEST_CASE("profile check: a range that ends before it begins, lacks an end, or is none") {
  refused("fitted_on:\n" + range("products", "least_work: 2 TFLOP, most_work: 1 GFLOP"), "fitted_on[0].least_work: above fitted_on[0].most_work, line");
  refused("fitted_on:\n" + range("streams", "least_bytes: 2 GiB, most_bytes: 1 GiB"), "expected: at most 1 GiB\n  got:      2 GiB");
  refused("fitted_on:\n" + range("all_reduce inside a host", "least_bytes: 1 B, most_bytes: 2 B, least_ranks: 8, most_ranks: 2"), "fitted_on[0].least_ranks: above");
  refused("fitted_on:\n" + range("products", "least_work: 2 TFLOP"), "fitted_on[0].least_work: most_work is missing beside it");
  refused("fitted_on:\n" + range("streams", "least_work: 1 GFLOP, most_work: 2 GFLOP"), "fitted_on[0]: no range of streams\n  expected: least_bytes and most_bytes");
  refused("fitted_on:\n" + range("product", "least_work: 1 GFLOP, most_work: 2 GFLOP"), "did you mean 'products'?");
  refused("fitted_on:\n" + range("products", "least_work: 1 GFLOP, most_work: 2 GFLOP") + range("products", "least_work: 1 GFLOP, most_work: 3 GFLOP"), "fitted_on[1].kernels: given before (fitted_on[0].kernels, line");
}

TEST_CASE("profile check: numbers that are none, and negative ones") {
  for (const char* value : {"-1 GFLOP", "0", ".nan", ".inf", "1e400 FLOP", "nan FLOP"}) refused("fitted_on:\n" + range("products", std::string{"least_work: "} + value + ", most_work: 2 TFLOP"), "fitted_on[0].least_work: ");
  refused("fitted_on:\n" + range("streams", "least_bytes: -1 B, most_bytes: 1 GiB"), "fitted_on[0].least_bytes: out of range");
  CHECK(errors_with("kernel_latency: {value: ", "", "-").find("overhead.kernel_latency.value: out of range") != std::string::npos);
  CHECK(errors_with("context: {value: ", "", "-").find("overhead.context.value: out of range") != std::string::npos);
}

TEST_CASE("profile check: costs and slow-downs once each") {
  const std::string cost = "  - {what: copy, latency: {value: 1 us, basis: measured, source: t}, bandwidth: {value: 1 GB/s, basis: measured, source: t}, least: 1 B, most: ";
  CHECK(errors_of("costs:\n" + cost + "2 B}\n").empty());
  refused("costs:\n" + cost + "0}\n", "costs[0].least: above costs[0].most");
  refused("costs:\n" + cost + "2 B}\n" + cost + "2 B}\n", "costs[1].what: given before");
  const std::string slow = "  - {what: t, slowdown: {value: 1.1, basis: measured, source: t}, kernels: products, workers: 2}\n";
  CHECK(errors_of("interference:\n" + slow).empty());
  refused("interference:\n" + slow + slow, "interference[1]: given before");
}

TEST_CASE("profile check: tiles of which none fits") {
  CHECK(errors_with("largest_area: ", "32768", "1").find("gemm.tiles.largest_area: no tile fits") != std::string::npos);
}

TEST_SUITE_END();
