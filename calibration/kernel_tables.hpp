// calibration/kernel_tables.hpp — measured kernels against the GPU model: tables in the form of
// ../shared/kernels/{gemm,attention_prefill,moe}.csv, told apart by their columns.
//   gemm       gpu, dtype, m, n, k, latency_us
//   attention  gpu, dtype, batch, q_heads, kv_heads, head_dim, seq_len, latency_us
//   moe        gpu, dtype, tokens, hidden, expert_inter, topk, experts, moe_tp, moe_ep, distribution, latency_us
// Other columns are ignored (moe: `kernel` ending in nongated means two matrices). A malformed row is a
// UserError with file:line; a GPU or dtype that cannot be forecast is refused with a reason and counted.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "calibration/profile.hpp"
#include "topologies/hardware.hpp"

namespace stepcast::calibration {

struct KernelErrors {
  std::int64_t n = 0;
  double median_ape_pct = 0;   // of |forecast / measured - 1|
  double p95_ape_pct = 0;
  double median_error_pct = 0; // signed: above zero the forecast is slower
};

struct RefusedRows {
  std::string gpu;
  std::string dtype;
  std::string reason;
  std::int64_t n = 0;
};

struct KernelReport {
  std::string source;
  std::string kind;                                                // gemm, attention, moe
  std::map<std::string, std::map<std::string, KernelErrors>> errors;  // by gpu and dtype as the table spells them
  std::map<std::string, std::string> profiles;                     // by gpu: the profile, and "(assumed)"
  std::vector<RefusedRows> refused;
};

// Rows to leave out: by floating-point operations, e.g. below 1 GFLOP; by a held-out half.
struct KernelFilter {
  double least_flops = 0;
  std::optional<int> half;  // 0 or 1: rows whose shape hashes to it
};

using FindGpu = std::function<const topology::Gpu*(const std::string& name)>;

// Name or alias; case, dashes and underscores alike.
FindGpu find_in(const topology::Catalogue& catalogue);

KernelReport validate_kernels(const std::string& path, const FindGpu& find_gpu,
                              const std::vector<Profile>& profiles, const KernelFilter& filter = {});

std::string to_text(const KernelReport& report);

// Exactly {gpu: {dtype: {n, median_ape_pct, p95_ape_pct}}}.
std::string to_json(const KernelReport& report);

}  // namespace stepcast::calibration
