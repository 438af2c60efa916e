#include "calibration/kernel_rows.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "sim/base/csv.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/text.hpp"

namespace stepcast::calibration {

namespace {

struct Form {
  KernelKind kind;
  std::vector<const char*> shape;
};

// moe first: a form is taken when all its columns are there.
std::vector<Form> forms() {
  return {{KernelKind::kMoe, {"tokens", "hidden", "expert_inter", "topk", "experts", "moe_tp", "moe_ep"}},
          {KernelKind::kAttention, {"batch", "q_heads", "kv_heads", "head_dim", "seq_len"}},
          {KernelKind::kGemm, {"m", "n", "k"}}};
}

Form form_of(const CsvTable& table) {
  const auto has = [&](const char* column) { return table.column(column).has_value(); };
  for (const Form& form : forms()) {
    if (!std::all_of(form.shape.begin(), form.shape.end(), has)) continue;
    if (!has("gpu") || !has("dtype") || !has("latency_us")) continue;
    if (form.kind != KernelKind::kMoe || has("distribution")) return form;
  }
  throw UserError(Diagnostic{
      .where = {table.file(), 1, 1},
      .problem = "not a kernel table",
      .expected = "columns gpu, dtype, latency_us and a shape: m, n, k; or batch, q_heads, kv_heads, head_dim, "
                  "seq_len; or tokens, hidden, expert_inter, topk, experts, moe_tp, moe_ep, distribution",
      .got = join(table.header(), ", ")});
}

// "balanced" is 0, "power_law_1.2" is 1.2.
std::optional<double> power_law_of(const std::string& distribution) {
  if (distribution == "balanced") return 0.0;
  const std::string prefix = "power_law_";
  if (!distribution.starts_with(prefix)) return {};
  const auto exponent = parse_number(distribution.substr(prefix.size()));
  return exponent && *exponent > 1.0 ? exponent : std::nullopt;
}

// One row being read; `good` turns false with the first diagnostic.
class Fields {
 public:
  Fields(const CsvTable& table, const CsvTable::Row& row, Diagnostics& diagnostics)
      : table_{table}, row_{row}, diagnostics_{diagnostics} {}

  const std::string& text(const char* column) const { return row_.fields[table_.require_column(column)]; }

  std::string name(const char* column) {
    if (text(column).empty()) refuse(column, "empty", "a name");
    return text(column);
  }

  std::int64_t count(const char* column) {
    const auto value = parse_number(text(column));
    constexpr double kMost = 1e8;
    if (value && *value >= 1 && *value <= kMost && std::floor(*value) == *value) return static_cast<std::int64_t>(*value);
    refuse(column, "not a count", "a whole number from 1 to 100000000");
    return 1;
  }

  double microseconds(const char* column) {
    const auto value = parse_number(text(column));
    if (value && *value >= 1e-6 && *value <= 1e12) return *value;
    refuse(column, "not a time", "a number above zero, of microseconds: 1e-6 to 1e12");
    return 1;
  }

  void refuse(const char* column, std::string problem, std::string expected) {
    good_ = false;
    diagnostics_.add({.where = {table_.file(), row_.line, 1},
                      .path = column,
                      .problem = std::move(problem),
                      .expected = std::move(expected),
                      .got = text(column)});
  }

  [[nodiscard]] bool good() const { return good_; }

 private:
  const CsvTable& table_;
  const CsvTable::Row& row_;
  Diagnostics& diagnostics_;
  bool good_ = true;
};

// Whether sizes of operands and work can be counted.
bool imaginable(KernelKind kind, const KernelRow& row) {
  constexpr double kMostWork = 1e17;      // [FLOP]
  constexpr double kMostElements = 1e16;
  const auto d = [&](std::size_t i) { return static_cast<double>(row.shape[i]); };
  double elements = 0.0;
  switch (kind) {
    case KernelKind::kGemm: elements = d(0) * d(1) + d(0) * d(2) + d(1) * d(2); break;
    case KernelKind::kAttention: elements = d(0) * (d(1) + d(2)) * d(3) * d(4); break;
    case KernelKind::kMoe: elements = d(4) * d(1) * d(2) + d(0) * d(3) * (d(1) + d(2)); break;
  }
  return flops_of(kind, row) <= kMostWork && elements <= kMostElements;
}

std::optional<KernelRow> read_row(const CsvTable& table, const CsvTable::Row& from, const Form& form,
                                  Diagnostics& diagnostics) {
  Fields fields{table, from, diagnostics};
  KernelRow row;
  row.gpu = fields.name("gpu");
  row.dtype = fields.name("dtype");
  for (const char* column : form.shape) row.shape.push_back(fields.count(column));
  row.seconds = fields.microseconds("latency_us") * 1e-6;
  if (form.kind == KernelKind::kAttention && table.column("kernel")) {
    row.triton = fields.text("kernel").starts_with("triton");
    row.vllm = fields.text("kernel").starts_with("vllm");
  }
  if (form.kind == KernelKind::kMoe) {
    const auto power_law = power_law_of(fields.text("distribution"));
    if (!power_law) fields.refuse("distribution", "unknown", "balanced, or power_law_ and an exponent above 1");
    row.power_law = power_law.value_or(0);
    row.gated = !(table.column("kernel") && fields.text("kernel").ends_with("nongated"));
  }
  if (fields.good() && !imaginable(form.kind, row))
    fields.refuse(form.shape.front(), "more than any GPU works on in one kernel", "less than 100 PFLOP, and operands of less than 1e16 elements");
  return fields.good() ? std::optional{row} : std::nullopt;
}

}  // namespace

const char* name_of(KernelKind kind) {
  switch (kind) {
    case KernelKind::kGemm: return "gemm";
    case KernelKind::kAttention: return "attention";
    case KernelKind::kMoe: return "moe";
  }
  return "";
}

KernelRows read_kernel_rows(const std::string& path) {
  const CsvTable table = CsvTable::read(path);
  const Form form = form_of(table);
  Diagnostics diagnostics;
  KernelRows result{.kind = form.kind, .rows = {}};
  for (const CsvTable::Row& from : table.rows())
    if (auto row = read_row(table, from, form, diagnostics)) result.rows.push_back(std::move(*row));
  diagnostics.throw_if_any();
  return result;
}

std::optional<plan::Dtype> kernel_dtype(const std::string& name) {
  if (name == "bf16" || name == "bfloat16") return plan::Dtype::kBf16;
  if (name == "fp16" || name == "float16") return plan::Dtype::kFp16;
  if (name == "tf32") return plan::Dtype::kTf32;
  if (name == "fp32" || name == "float32") return plan::Dtype::kFp32;
  if (name == "fp8" || name == "fp8_block") return plan::Dtype::kFp8;
  return {};
}

double flops_of(KernelKind kind, const KernelRow& row) {
  const auto d = [&](std::size_t i) { return static_cast<double>(row.shape[i]); };
  switch (kind) {
    case KernelKind::kGemm: return 2 * d(0) * d(1) * d(2);
    case KernelKind::kAttention: return 2 * d(0) * d(1) * d(3) * d(4) * d(4);
    case KernelKind::kMoe: return (row.gated ? 6 : 4) * d(0) * d(1) * d(2) * d(3) / (d(5) * d(6));
  }
  return 0;
}

int half_of(const KernelRow& row) {
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a
  std::string key;
  for (const std::int64_t value : row.shape) key += (key.empty() ? "" : ",") + std::to_string(value);
  for (const char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return static_cast<int>((hash >> 20U) & 1U);
}

}  // namespace stepcast::calibration
