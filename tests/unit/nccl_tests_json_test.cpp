// What nccl-tests writes with -J, in samples written by hand.
#include <doctest/doctest.h>

#include <string>

#include "calibration/nccl_tests_log.hpp"
#include "sim/base/diagnostic.hpp"

using namespace stepcast;
using namespace stepcast::calibration;

TEST_SUITE_BEGIN("unit");

namespace {

const std::string kHead =
    R"({"version": 3, "start_time": "2026-11-30", "args": ["/opt/build\/all_reduce_perf", "-b", "1K", "-J", "out.json"], "env": ["TOKEN=hidden"],
 "nccl_version": "2.27.3", "config": {"nthreads": 1, "ngpus": 2, "minimum_bytes": 1024, "maximum_bytes": 2048, "validation": "true",
 "devices": [{"rank": 0, "hostname": "node01", "device": 0, "device_info": "NVIDIA H100 80GB HBM3"}, {"rank": 1, "hostname": "node01", "device": 1, "device_info": "NVIDIA H100 80GB HBM3"}]},
 "results": [
  {"size": 1024, "count": 256, "type": "float", "redop": "sum", "root": "    -1", "out_of_place": {"time": 10.5, "alg_bw": 0.0975, "bus_bw": 0.0975, "nwrong": 0}, "in_place": {"time": 10.4, "alg_bw": 0.1, "bus_bw": 0.1, "nwrong": "nan"}},
  {"size": 2048, "count": 512, "type": "float", "redop": "sum", "root": "    -1", "out_of_place": {"cpu_time": 11, "alg_bw": 0.19, "bus_bw": 0.19, "nwrong": 0}})";

std::string error_of(const std::string& text) {
  try {
    read_nccl_log(text, "a.json");
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("nccl json: rows, devices and the command, as the printed form has them") {
  const NcclLog log = read_nccl_log(kHead + R"(], "out_of_bounds": {"count": 0, "okay": "true"}, "average_bus_bandwidth": {"bandwidth": 0.14, "okay": "true"}, "errors": []})", "a.json");
  CHECK(log.nccl_version == "2.27.3");
  REQUIRE(log.runs.size() == 1);
  CHECK(log.runs[0].collective == "all_reduce");
  CHECK(log.runs[0].command == "/opt/build/all_reduce_perf -b 1K -J out.json");
  CHECK(log.runs[0].options == "nThread 1 nGpus 2 minBytes 1024 maxBytes 2048");
  CHECK(ranks_of(log, 0)->ranks == 2);
  CHECK(log.runs[0].devices[1].name == "NVIDIA H100 80GB HBM3");
  REQUIRE(log.rows.size() == 2);
  CHECK(log.rows[0].root == "-1");
  CHECK(log.rows[0].seconds() == doctest::Approx(10.5e-6));
  CHECK(log.rows[0].in_place->wrong == "N/A");
  CHECK(log.rows[1].seconds() == doctest::Approx(11e-6));
  CHECK_FALSE(log.rows[1].in_place);
  CHECK(log.remarks.empty());
}

TEST_CASE("nccl json: a file that was cut off keeps its whole results") {
  const NcclLog log = read_nccl_log(kHead + R"(, {"size": 4096, "cou)", "a.json");
  CHECK(log.rows.size() == 2);
  REQUIRE(log.remarks.size() == 1);
  CHECK(log.remarks[0].text.find("cut off") != std::string::npos);
}

TEST_CASE("nccl json: what cannot be is refused or said") {
  CHECK(error_of("{").find("no row of nccl-tests") != std::string::npos);
  CHECK(error_of("{\"version\": 3, ").find("is no JSON") != std::string::npos);
  CHECK(error_of("{\"traceEvents\": []}").find("no list of results") != std::string::npos);
  CHECK(error_of("{\"results\": []}").find("no result that can be read") != std::string::npos);
  CHECK(error_of("{\"results\": [{\"size\": -1, \"count\": 2}, 7, null]}").find("result 1: no size or count") != std::string::npos);
  const NcclLog log = read_nccl_log(R"({"results": [{"size": 8, "count": 2, "out_of_place": {"time": "nan", "alg_bw": "inf", "bus_bw": null}}, {"size": 8, "count": 2}]})", "a.json");
  REQUIRE(log.rows.size() == 1);
  CHECK_FALSE(log.rows[0].seconds());
  CHECK(log.rows[0].out_of_place.algbw == "N/A");
  CHECK(log.remarks.front().text == "result 2: no times");
}

TEST_SUITE_END();
