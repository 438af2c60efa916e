// calibration/kernel_rows.hpp — rows of published kernel tables, read by column name. The three forms
// are told apart by their columns (kernel_tables.hpp). All malformed rows are reported at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/plan/kernel.hpp"

namespace stepcast::calibration {

enum class KernelKind : std::uint8_t { kGemm, kAttention, kMoe };
const char* name_of(KernelKind kind);

struct KernelRow {
  std::string gpu;
  std::string dtype;
  // gemm: m, n, k; attention: batch, query heads, kv heads, head dim, sequence; moe: tokens, hidden,
  // intermediate, top-k, experts, tensor parallel, expert parallel.
  std::vector<std::int64_t> shape;
  double power_law = 0;  // moe: exponent of the expert load, 0: balanced
  bool gated = true;     // moe: three matrices
  double seconds = 0;    // measured
  bool triton = false;   // attention: a compiled stand-in where the vendor's kernels lack a head dimension
  bool vllm = false;     // attention: vLLM's call, its own kernels and cache
};

struct KernelRows {
  KernelKind kind = KernelKind::kGemm;
  std::vector<KernelRow> rows;
};

// Throws UserError: not one of the forms, or rows that cannot be read.
KernelRows read_kernel_rows(const std::string& path);

// Number formats as the tables spell them; none: not modelled.
std::optional<plan::Dtype> kernel_dtype(const std::string& name);

// Floating-point operations that the tables count: causal attention half the square.
double flops_of(KernelKind kind, const KernelRow& row);

// 0 or 1, by a hash of the shape alone: the same on every GPU and in every order of rows.
int half_of(const KernelRow& row);

}  // namespace stepcast::calibration
