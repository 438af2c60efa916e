// The GPU model against measured kernels. First a few figures carried over with their source; then, when
// the shared tables are there (beside the checkout or under STEPCAST_SHARED), whole tables, on the half
// of the shapes that no profile was fitted to.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "calibration/gpu_parameters.hpp"
#include "calibration/kernel_forecast.hpp"
#include "calibration/kernel_tables.hpp"
#include "models/gpu/gpu_model.hpp"
#include "models/workload/operators.hpp"
#include "sim/base/csv.hpp"
#include "tests/support/source_dir.hpp"
#include "topologies/catalogue.hpp"

using namespace stepcast;
using namespace stepcast::calibration;

TEST_SUITE_BEGIN("diff");

namespace {

const std::string kRoot = STEPCAST_SOURCE_DIR;

struct Shipped {
  topology::Catalogue catalogue = topology::load_catalogue(kRoot + "/topologies/data");
  std::vector<Profile> profiles = read_profiles(kRoot + "/calibration/profiles");

  KernelForecast forecast(const std::string& name) const {
    const topology::Gpu& gpu = topology::find_gpu(catalogue, name);
    return {gpu, choose_profile(profiles, gpu).profile};
  }
};

std::optional<std::string> table(const std::string& name) {
  const char* given = std::getenv("STEPCAST_SHARED");
  const std::string path = (given != nullptr ? std::string{given} : kRoot + "/../shared") + "/kernels/" + name;
  if (std::filesystem::exists(path)) return path;
  std::printf("skipped: %s is absent\n", path.c_str());
  return {};
}

double error(double forecast_s, double measured_us) { return std::abs(forecast_s / (measured_us * 1e-6) - 1.0); }

}  // namespace

// ai-dynamo/aiconfigurator 095f58a51c4c, bf16 gemm and context-attention tables, SGLang 0.5.10 (A100) and
// 0.5.14. Tolerance 15 %: the same shape differs by 2 to 38 % between collections.
TEST_CASE("gpu kernels: figures carried over from published tables") {
  struct Gemm {
    const char* gpu;
    std::int64_t m, n, k;
    double us;
  };
  const Shipped shipped;
  for (const Gemm& g : {Gemm{"a100_sxm", 8192, 8192, 8192, 4280.4}, Gemm{"a100_sxm", 4096, 8192, 4096, 1131.1},
                        Gemm{"h100_sxm", 8192, 8192, 8192, 1673.0}, Gemm{"h100_sxm", 4096, 8192, 4096, 353.7},
                        Gemm{"h100_sxm", 2048, 2560, 10240, 132.08}, Gemm{"h200_sxm", 2048, 2560, 10240, 134.76},
                        Gemm{"b200_sxm", 8192, 8192, 8192, 699.7}, Gemm{"b200_sxm", 4096, 8192, 4096, 172.81}}) {
    CAPTURE(g.gpu);
    CAPTURE(g.m);
    const double forecast = shipped.forecast(g.gpu).gemm_seconds(g.m, g.n, g.k, plan::Dtype::kBf16);
    CAPTURE(forecast);
    CHECK(error(forecast, g.us) < 0.15);
  }
  const AttentionCase two{2, 32, 32, 128, 2048};
  CHECK(error(shipped.forecast("a100_sxm").attention_seconds(two, plan::Dtype::kBf16), 519.93) < 0.15);
  CHECK(error(shipped.forecast("h100_sxm").attention_seconds(two, plan::Dtype::kBf16), 200.69) < 0.15);
}

// MooreThreads/SimuMax 4dcaae513ba7, grouped products of experts on B200 (forward and input gradient; the
// weight gradient adds into fp32). SimuMax's B200 is slower than AIConfigurator's, plain products included (0.48 of the
// peak against 0.65 on large shapes, cause not stated), so the model that is fitted to the latter comes out fast:
// stated as a band, not as agreement.
TEST_CASE("gpu kernels: grouped products against SimuMax") {
  const auto path = table("simumax_grouped_gemm.csv");
  if (!path) return;
  const Shipped shipped;
  const CsvTable rows = CsvTable::read(*path);
  const auto number = [&](const CsvTable::Row& row, const char* column) {
    return static_cast<std::int64_t>(std::llround(std::strtod(row.fields[rows.require_column(column)].c_str(), nullptr)));
  };
  std::map<std::string, std::vector<double>> ratios;
  for (const CsvTable::Row& row : rows.rows()) {
    const std::string& system = row.fields[rows.require_column("system")];
    const std::string& stage = row.fields[rows.require_column("stage")];
    const topology::Gpu& gpu = topology::find_gpu(shipped.catalogue, system == "a100_pcie" ? "a100_sxm" : system);
    const gpu::GpuModel model{make_parameters(gpu, choose_profile(shipped.profiles, gpu).profile, ClockRegime::kSustained)};
    const std::int64_t groups = number(row, "num_groups");
    const std::int64_t m = number(row, "M_per_group");
    const std::int64_t n = number(row, "N");
    const std::int64_t k = number(row, "K");
    const bool weights = stage == "bwd_grad_w";
    plan::Kernel kernel{.op = plan::OpClass::kGemm, .pass = weights ? plan::Pass::kWeightGrad : plan::Pass::kForward};
    kernel.gemm = weights ? plan::GemmShape{groups, n, k, m} : plan::GemmShape{groups, m, n, k};
    kernel.read = Bytes{groups * (m * k + k * n) * 2 + (weights ? groups * n * k * 4 : 0)};
    kernel.written = Bytes{weights ? groups * n * k * 4 : groups * m * n * 2};
    const double measured_s = std::strtod(row.fields[rows.require_column("implied_time_us")].c_str(), nullptr) * 1e-6;
    ratios[system + " " + stage].push_back(model.time(kernel).seconds() / measured_s);
  }
  for (auto& [what, list] : ratios) {
    std::sort(list.begin(), list.end());
    const double median = list[list.size() / 2];
    std::printf("grouped products, %s: %zu shapes, forecast / measured: median %.2f, from %.2f to %.2f\n", what.c_str(),
                list.size(), median, list.front(), list.back());
    CAPTURE(what);
    CHECK(median > 0.5);
    CHECK(median < 1.25);
  }
}

// Korthikanti et al. 2022 (arXiv 2205.05198), table 4: forward of one layer of the 22B model on A100,
// tensor parallel 8, 7.7 ms; 7.2 ms with sequence parallelism. Unfused attention, dropout. The two
// all-reduces of 100.7 MB are taken from a measured one: 913 us for 103.8 MB on eight A100 (vTrain
// f8dda8473a48). Nothing was fitted to these rows. Tolerance 10 %.
TEST_CASE("gpu kernels: a published transformer layer") {
  const Shipped shipped;
  const topology::Gpu& gpu = topology::find_gpu(shipped.catalogue, "a100_sxm");
  const gpu::GpuModel model{make_parameters(gpu, choose_profile(shipped.profiles, gpu).profile)};
  workload::ModelShape shape;
  shape.hidden = 6144;
  shape.heads = shape.kv_heads = 64;
  shape.head_dim = 96;
  shape.ffn = 4 * 6144;
  shape.layers = 48;
  shape.vocab = 51200;
  shape.norm = workload::NormKind::kLayerNorm;
  shape.activation = workload::Activation::kGelu;
  shape.position = workload::Position::kLearned;
  shape.max_positions = 2048;
  shape.attention_bias = shape.mlp_bias = true;
  workload::BlockOptions options;
  options.micro_batch = 4;
  options.sequence = 2048;
  options.tensor_parallel = 8;
  options.dtype = plan::Dtype::kFp16;
  options.attention = workload::AttentionKernel::kUnfused;
  options.dropout = 0.1;
  const auto forward_ms = [&](bool sequence_parallel) {
    options.sequence_parallel = sequence_parallel;
    double seconds = 2 * 913e-6 * (2.0 * 4 * 2048 * 6144) / 103809024.0;
    for (const workload::Step& step : workload::make_layer(shape, 0, options).forward)
      if (const auto* op = std::get_if<workload::Operator>(&step))
        seconds += model.time(op->kernel).seconds() + op->kernel.launches * model.kernel_gap().seconds();
    return 1e3 * seconds;
  };
  CHECK(std::abs(forward_ms(false) / 7.7 - 1) < 0.10);
  CHECK(std::abs(forward_ms(true) / 7.2 - 1) < 0.10);
}

// Tolerances are the aims of the model, on shapes of 1 GFLOP and up in the half that was not fitted.
TEST_CASE("gpu kernels: bf16 GEMM tables, held-out half") {
  const auto path = table("gemm.csv");
  if (!path) return;
  const Shipped shipped;
  const KernelReport report =
      validate_kernels(*path, find_in(shipped.catalogue), shipped.profiles, {.least_flops = 1e9, .half = 1});
  std::fputs(to_text(report).c_str(), stdout);
  for (const char* gpu : {"a100_sxm", "h100_sxm", "h200_sxm", "b200_sxm", "b300_sxm", "gb200", "gb300"}) {
    CAPTURE(gpu);
    const KernelErrors& e = report.errors.at(gpu).at("bf16");
    CHECK(e.n > 400);
    CHECK(e.median_ape_pct < 10);
    CHECK(e.p95_ape_pct < 35);
  }
}

TEST_CASE("gpu kernels: bf16 attention tables, held-out half") {
  const auto path = table("attention_prefill.csv");
  if (!path) return;
  const Shipped shipped;
  const KernelReport report =
      validate_kernels(*path, find_in(shipped.catalogue), shipped.profiles, {.least_flops = 1e9, .half = 1});
  std::fputs(to_text(report).c_str(), stdout);
  for (const char* gpu : {"a100_sxm", "h100_sxm", "h200_sxm"}) {
    CAPTURE(gpu);
    CHECK(report.errors.at(gpu).at("bf16").median_ape_pct < 12);
  }
  // Rows of four kernels with different speeds lie in one table here.
  CHECK(report.errors.at("b200_sxm").at("bf16").median_ape_pct < 16);
}

TEST_SUITE_END();
