// `stepcast import nccl-tests`: what it says of a log, and the one error of a file that is none.
#include <doctest/doctest.h>

#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/support/program.hpp"

using stepcast::test::Outcome;
using stepcast::test::run_stepcast;
using stepcast::test::TemporaryDirectory;

TEST_SUITE_BEGIN("e2e");

TEST_CASE("import: rows, command line, GPUs and version of a log") {
  const TemporaryDirectory place;
  const std::string file = (place.path() / "a.log").string();
  std::ofstream(file) << "0: ./all_reduce_perf -b 1K -e 2K\n"
                         "0: # nThread 1 nGpus 2 minBytes 1024 maxBytes 2048 step: 2(factor)\n"
                         "0: #   Rank  0 Pid     25 on     node01 device  0 [0x10] A100-SXM4-40GB\n"
                         "0: #   Rank  1 Pid     25 on     node01 device  1 [0x10] A100-SXM4-40GB\n"
                         "0: NCCL version 2.9.9+cuda11.2\n"
                         "0:         1024           256   float     sum    20.1    0.05    0.05  1e-07    20.0    0.05    0.05  1e-07\n"
                         "0:         2048           512   float     sum    20.9    0.10    0.10\n";
  const Outcome text = run_stepcast("import nccl-tests " + file);
  CHECK(text.status == 0);
  for (const char* word : {"NCCL 2.9.9+cuda11.2", "1 rows, 1024 to 1024 B", "all_reduce", "2, A100-SXM4-40GB, 1 host listed",
                           "./all_reduce_perf -b 1K -e 2K", "line 7 not understood"}) {
    CHECK_MESSAGE(text.out.find(word) != std::string::npos, text.out);
  }
  const auto json = nlohmann::json::parse(run_stepcast("import nccl-tests --json - " + file).out);
  CHECK(json["runs"][0]["ranks"] == 2);
  CHECK(json["rows"][0]["out_of_place"]["time"] == "20.1");
  CHECK(json["rows"][0]["root"].is_null());
  CHECK(json["not_understood"][0]["line"] == 7);
}

TEST_CASE("import: bad input is one error") {
  const Outcome none = run_stepcast("import nccl-tests README.md");
  CHECK(none.status == 2);
  CHECK(none.err.find("README.md: error: no row of nccl-tests in it") != std::string::npos);
  CHECK(run_stepcast("import nccl-tests absent.log").status == 2);
  const Outcome kind = run_stepcast("import ncl-tests README.md");
  CHECK(kind.status == 2);
  CHECK(kind.err.find("did you mean 'nccl-tests'?") != std::string::npos);
}

TEST_SUITE_END();
