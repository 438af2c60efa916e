#include "executor/common/transformer_facts.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "sim/base/diagnostic.hpp"

namespace stepcast::executor {
namespace {

using plan::Axis;

class Reader {
 public:
  Reader(const plan::Plan& plan, RankId rank, const std::string& file) : plan_{plan}, program_{plan.program(rank)}, at_{plan.coordinates(rank)}, file_{file} {}

  TransformerFacts read() {
    refuse_axes();
    TransformerFacts f;
    f.tp = plan_.degrees[Axis::kTensor];
    f.tp_rank = at_[Axis::kTensor];
    f.dp_rank = at_[Axis::kData];
    f.tokens_in_step = plan_.work.tokens;
    std::set<std::uint16_t> layers;
    for (const plan::Instruction& i : program_.instructions) {
      if (i.layer && is_layer(i)) layers.insert(*i.layer);
      if (i.micro_batch) f.micro_batches = std::max<std::int64_t>(f.micro_batches, *i.micro_batch + 1);
    }
    f.layers.assign(layers.begin(), layers.end());
    if (f.layers.empty()) refuse("no transformer layer");
    const plan::GemmShape qkv = product("layer.attention.qkv");
    f.rows = qkv.m;
    f.hidden = qkv.k;
    f.attention = attention();
    f.sequence = f.attention.kv_length;
    if (qkv.n != f.qkv_width()) refuse("queries, keys and values that are not made by one product of that width");
    const plan::GemmShape up = product("layer.mlp.up");
    f.ffn = product("layer.mlp.down").k;
    if (up.n != 2 * f.ffn) refuse("an MLP of two matrices: only SwiGLU's three");
    f.first = kernel("embedding") != nullptr;
    f.last = kernel("head.logits") != nullptr;
    if (f.last) f.vocab = product("head.logits").n;
    if (f.first) f.vocab = embedding_rows(f);
    check_norm(f);
    if (kernel("layer.attention.rotary") == nullptr) refuse("positions other than rotary");
    return f;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw UserError(Diagnostic{.where = {file_, 0, 0}, .problem = "program \"" + program_.name + "\" has " + what + ", which is not trained for real",
                               .expected = "a dense decoder with RMSNorm, SwiGLU and rotary positions, without biases, ends not tied, in fp32",
                               .hint = "without --train the plan runs on random data"});
  }

  void refuse_axes() const {
    if (plan_.degrees[Axis::kContext] > 1) refuse("context parallelism");
    if (plan_.degrees[Axis::kExpert] > 1) refuse("expert parallelism");
  }

  [[nodiscard]] const std::string& label(const plan::Instruction& i) const { return program_.labels[i.label.index()]; }
  [[nodiscard]] bool is_layer(const plan::Instruction& i) const { return label(i).starts_with("layer.") && std::holds_alternative<plan::Compute>(i.body); }

  [[nodiscard]] const plan::Kernel* kernel(const std::string& name) const {
    for (const plan::Instruction& i : program_.instructions) {
      const auto* compute = std::get_if<plan::Compute>(&i.body);
      if (compute != nullptr && label(i) == name) return &program_.kernels[compute->kernel.index()];
    }
    return nullptr;
  }

  [[nodiscard]] plan::GemmShape product(const std::string& name) const {
    const plan::Kernel* found = kernel(name);
    if (found == nullptr || !found->gemm) refuse("no matrix product '" + name + "'");
    return *found->gemm;
  }

  [[nodiscard]] plan::AttentionShape attention() const {
    const plan::Kernel* found = kernel("layer.attention.core");
    if (found == nullptr || !found->attention) refuse("attention that is not fused");
    const plan::AttentionShape& s = *found->attention;
    if (!s.causal || s.window || s.query_length != s.kv_length || s.head_dim != s.value_dim) refuse("attention other than causal over whole sequences");
    return s;
  }

  // The table has as many rows as the parameters leave for it.
  [[nodiscard]] std::int64_t embedding_rows(const TransformerFacts& f) const {
    for (const plan::Buffer& buffer : program_.buffers) {
      if (buffer.category != plan::Category::kParameters) continue;
      const std::int64_t elements = buffer.size.count() / plan::element_bytes(plan::Dtype::kFp32);
      const std::int64_t layer = 2 * f.hidden + f.hidden * (f.qkv_width() + f.query_width() + 3 * f.ffn);
      const std::int64_t head = f.last ? f.hidden * (f.vocab + 1) : 0;
      const std::int64_t table = elements - layer * static_cast<std::int64_t>(f.layers.size()) - head;
      if (table <= 0 || table % f.hidden != 0) refuse("parameters other than those of its operators (tied ends?)");
      return table / f.hidden;
    }
    refuse("no buffer of parameters");
  }

  // RMSNorm takes 4 operations an element, LayerNorm 7.
  void check_norm(const TransformerFacts& f) const {
    const plan::Kernel* norm = kernel("layer.norm1");
    if (norm == nullptr || norm->flops.si() != 4.0 * static_cast<double>(f.rows * f.hidden)) refuse("norms other than RMSNorm, or split along the sequence");
  }

  const plan::Plan& plan_;
  const plan::Program& program_;
  plan::PerAxis at_;
  std::string file_;
};

}  // namespace

TransformerFacts read_transformer(const plan::Plan& plan, RankId rank, const std::string& file) { return Reader{plan, rank, file}.read(); }

}  // namespace stepcast::executor
