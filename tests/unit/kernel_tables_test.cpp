#include <doctest/doctest.h>

#include <filesystem>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "calibration/kernel_forecast.hpp"
#include "calibration/kernel_tables.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"
#include "tests/support/gpu_profile_fixture.hpp"

using namespace stepcast;
using namespace stepcast::calibration;
using namespace stepcast::calibration::testing;

TEST_SUITE_BEGIN("unit");

namespace {

std::string written(const std::string& name, const std::string& text) {
  const std::string path = (std::filesystem::temp_directory_path() / ("stepcast_kernel_" + name)).string();
  write_file(path, text);
  return path;
}

topology::Catalogue round_catalogue() {
  topology::Catalogue catalogue;
  catalogue.gpus.emplace("round-gpu", round_gpu_entry());
  return catalogue;
}

KernelReport validate(const std::string& path, const KernelFilter& filter = {}) {
  const topology::Catalogue catalogue = round_catalogue();
  return validate_kernels(path, find_in(catalogue), {round_profile()}, filter);
}

std::string message_of(const std::string& path) {
  try {
    validate(path);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

// Measured times are the forecast over 1.1, over 1.2 and over 0.7, so the errors are 10 %, 20 % and 30 %:
// the median is 20, the 95th percentile of three (nearest rank) the largest.
TEST_CASE("kernel tables: errors are counted by GPU and dtype") {
  const KernelForecast model{round_gpu_entry(), round_profile()};
  const auto row = [&](int m, double factor) {
    return fmt::format("ROUND_GPU 16gb,bf16,{},1024,2048,{:.9f},x\n", m,
                       model.gemm_seconds(m, 1024, 2048, plan::Dtype::kBf16) * 1e6 / factor);
  };
  const std::string path = written("good.csv", "gpu,dtype,m,n,k,latency_us,source\n" + row(128, 1.1) + row(256, 1.2) +
                                                   row(512, 0.7) + "nobody,bf16,128,512,512,9,x\n" +
                                                   "round-gpu,fp8,128,512,512,9,x\nround-gpu,int4,128,512,512,9,x\n");
  const KernelReport report = validate(path);
  CHECK(report.kind == "gemm");
  const KernelErrors& e = report.errors.at("ROUND_GPU 16gb").at("bf16");
  CHECK(e.n == 3);
  CHECK(e.median_ape_pct == doctest::Approx(20).epsilon(1e-4));
  CHECK(e.p95_ape_pct == doctest::Approx(30).epsilon(1e-4));
  CHECK(e.median_error_pct == doctest::Approx(10).epsilon(1e-4));
  REQUIRE(report.refused.size() == 3);
  CHECK(report.refused[0].gpu == "nobody");
  CHECK(report.refused[0].reason == "not in the catalogue");
  CHECK(report.refused[1].dtype == "fp8");
  CHECK(report.refused[2].reason == "dtype is not modelled");
  // A filter by operations leaves the two larger rows: 2 * 256 * 1024 * 2048 = 1.07e9.
  CHECK(validate(path, {.least_flops = 1e9, .half = {}}).errors.at("ROUND_GPU 16gb").at("bf16").n == 2);
  const auto first = validate(path, {.least_flops = 0, .half = 0}).errors;
  const auto second = validate(path, {.least_flops = 0, .half = 1}).errors;
  std::int64_t both = 0;
  for (const auto* half : {&first, &second})
    for (const auto& [gpu, by_dtype] : *half)
      for (const auto& [dtype, errors] : by_dtype) both += errors.n;
  CHECK(both == 3);
}

TEST_CASE("kernel tables: JSON holds n, median and 95th percentile by GPU and dtype, nothing else") {
  KernelReport report;
  report.errors["a"]["bf16"] = {.n = 2, .median_ape_pct = 1.5, .p95_ape_pct = 3, .median_error_pct = -1};
  CHECK(nlohmann::json::parse(to_json(report)) ==
        nlohmann::json::parse(R"({"a": {"bf16": {"n": 2, "median_ape_pct": 1.5, "p95_ape_pct": 3.0}}})"));
  CHECK(to_json(KernelReport{}) == "{}\n");
}

TEST_CASE("kernel tables: attention and mixture tables are told apart by their columns") {
  const std::string attention = written(
      "attention.csv", "gpu,dtype,batch,q_heads,kv_heads,head_dim,seq_len,latency_us\nround-gpu,bf16,1,8,8,128,2048,900\n");
  CHECK(validate(attention).kind == "attention");
  CHECK(validate(attention).errors.at("round-gpu").at("bf16").n == 1);
  const std::string moe = written(
      "moe.csv",
      "gpu,dtype,tokens,hidden,expert_inter,topk,experts,moe_tp,moe_ep,distribution,latency_us,kernel\n"
      "round-gpu,bf16,1024,4096,1536,8,128,1,8,balanced,900,trtllm_nongated\n"
      "round-gpu,bf16,1024,4096,1536,8,128,1,8,power_law_1.2,900,trtllm\n");
  CHECK(validate(moe).kind == "moe");
  CHECK(validate(moe).errors.at("round-gpu").at("bf16").n == 2);
}

TEST_CASE("kernel tables: malformed rows are all reported with their lines") {
  const std::string text = message_of(written("bad.csv",
                                              "gpu,dtype,m,n,k,latency_us\n"
                                              "round-gpu,bf16,128,512,512,-3\n"
                                              "round-gpu,bf16,128,512,512,9\n"
                                              "round-gpu,bf16,0,512,1.5,9\n"
                                              ",bf16,128,512,512,9\n"
                                              "round-gpu,bf16,100000000,100000000,100000000,9\n"
                                              "round-gpu,bf16,200000000,512,512,9\n"
                                              "round-gpu,bf16,128,512,512,1e-9\n"));
  CHECK(text.find("bad.csv:2:1: error: latency_us: not a time") != std::string::npos);
  CHECK(text.find("bad.csv:4:1: error: m: not a count") != std::string::npos);
  CHECK(text.find("bad.csv:4:1: error: k: not a count") != std::string::npos);
  CHECK(text.find("bad.csv:5:1: error: gpu: empty") != std::string::npos);
  CHECK(text.find("bad.csv:6:1: error: m: more than any GPU works on in one kernel") != std::string::npos);
  CHECK(text.find("bad.csv:7:1: error: m: not a count") != std::string::npos);
  CHECK(text.find("bad.csv:8:1: error: latency_us: not a time") != std::string::npos);
  CHECK(text.find("bad.csv:3") == std::string::npos);
  CHECK(message_of(written("form.csv", "gpu,m,n\nx,1,2\n")).find("not a kernel table") != std::string::npos);
  CHECK(message_of(written("moe_bad.csv",
                           "gpu,dtype,tokens,hidden,expert_inter,topk,experts,moe_tp,moe_ep,distribution,latency_us\n"
                           "round-gpu,bf16,1,1,1,1,1,1,1,zipf,9\n"))
            .find("distribution: unknown") != std::string::npos);
}

// 1024 tokens, 8 choices over 128 experts: 64 a piece; 8 ranks of 16 experts.
TEST_CASE("kernel tables: expert loads") {
  MoeCase c{.tokens = 1024, .hidden = 1, .intermediate = 1, .top_k = 8, .experts = 128, .tensor_parallel = 1, .expert_parallel = 8};
  CHECK(expert_loads(c) == std::vector<std::int64_t>(16, 64));
  // Fewer assignments than experts: 8 tokens, one choice each, 16 experts a rank, at most one row each.
  c.tokens = 8;
  c.top_k = 1;
  CHECK(expert_loads(c) == std::vector<std::int64_t>(1, 1));
  // A power law on one rank hands out all assignments but rounding, the first expert most.
  c = {.tokens = 4096, .hidden = 1, .intermediate = 1, .top_k = 8, .experts = 128, .power_law = 1.2};
  const auto loads = expert_loads(c);
  CHECK(loads.front() <= 4096);
  CHECK(std::is_sorted(loads.rbegin(), loads.rend()));
  const auto sum = std::accumulate(loads.begin(), loads.end(), std::int64_t{0});
  CHECK(sum <= 4096 * 8 + 64);
  CHECK(sum > 4096 * 8 * 9 / 10);
}

TEST_SUITE_END();
