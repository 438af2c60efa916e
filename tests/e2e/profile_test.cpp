// `stepcast profile`: the figures of a profile, and where two differ.
#include <doctest/doctest.h>

#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/support/program.hpp"

using stepcast::test::Outcome;
using stepcast::test::run_stepcast;
using stepcast::test::TemporaryDirectory;
using stepcast::test::text_of;

TEST_SUITE_BEGIN("e2e");

TEST_CASE("profile: show names each figure with unit, deviation, evidence and source") {
  const Outcome text = run_stepcast("profile show h100");
  CHECK(text.status == 0);
  for (const char* word : {"gemm.mma_efficiency", "overhead.kernel_latency", "us", "measured", "assumed", "gemm.tiles.rows", "collectives.ll_base"}) CHECK_MESSAGE(text.out.find(word) != std::string::npos, text.out);
  const auto json = nlohmann::json::parse(run_stepcast("profile show --json - h100").out);
  bool found = false;
  for (const auto& figure : json["figures"]) {
    if (figure["key"] != "overhead.kernel_gap") continue;
    found = true;
    CHECK(figure["unit"] == "s");
    CHECK(figure["basis"] == "assumed");
    CHECK(figure["date"].is_null());
    CHECK(figure["plus_minus"].get<double>() == doctest::Approx(0.3 * figure["value"].get<double>()));
  }
  CHECK(found);
}

TEST_CASE("profile: a GPU's name, an alias and a network card find their profiles") {
  CHECK(run_stepcast("profile show H100-SXM").out.find("h100 (") == 0);
  CHECK(run_stepcast("profile show ib-ndr-400").out.find("simple_hop") != std::string::npos);
  CHECK(run_stepcast("profile show calibration/profiles/network/ib-ndr-400.yaml").out.find("simple_hop") != std::string::npos);
}

// The kernel latency times 1.17: some deviations apart.
TEST_CASE("profile: diff says ratio and deviations, and nothing of what is alike") {
  const Outcome same = run_stepcast("profile diff h100 calibration/profiles/h100.yaml");
  CHECK(same.status == 0);
  CHECK(same.out.find("0 of") != std::string::npos);
  const TemporaryDirectory place;
  std::string text = text_of(std::string{STEPCAST_SOURCE_DIR} + "/calibration/profiles/h100.yaml");
  const std::string key = "kernel_latency: {value: ";
  const std::size_t at = text.find(key) + key.size();
  const double before = std::stod(text.substr(at));
  const std::size_t end = text.find(' ', at);  // before the unit
  text.replace(at, end - at, std::to_string(before * 1.17));
  text.replace(text.find("\"9.0\""), 5, "\"9.1\"");
  const std::string file = (place.path() / "mine.yaml").string();
  std::ofstream(file) << text;
  const auto json = nlohmann::json::parse(run_stepcast("profile diff h100 " + file + " --json -").out);
  REQUIRE(json["figures"].size() == 1);
  CHECK(json["figures"][0]["key"] == "overhead.kernel_latency");
  CHECK(json["figures"][0]["ratio"].get<double>() == doctest::Approx(1.17).epsilon(1e-4));
  CHECK(json["figures"][0]["sigmas"].get<double>() > 0.1);
  REQUIRE(json["others"].size() == 1);
  CHECK(json["others"][0]["key"] == "architectures");
}

TEST_CASE("profile: bad input is one error") {
  const Outcome unknown = run_stepcast("profile show h10");
  CHECK(unknown.status == 2);
  CHECK(unknown.err.find("did you mean 'h100'") != std::string::npos);
  CHECK(run_stepcast("profile show").status == 2);
  CHECK(run_stepcast("profile diff h100").status == 2);
  CHECK(run_stepcast("profile shw h100").err.find("show NAME") != std::string::npos);
  const TemporaryDirectory place;
  const std::string empty = (place.path() / "empty.yaml").string();
  std::ofstream{empty};
  CHECK(run_stepcast("profile show " + empty).err.find("the file is empty") != std::string::npos);
}
