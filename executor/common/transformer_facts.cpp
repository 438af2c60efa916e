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
  Reader(const plan::Plan& plan, RankId rank, const std::string& file) : plan_{plan}, rank_{rank}, program_{plan.program(rank)}, at_{plan.coordinates(rank)}, file_{file} {}

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
    read_table(f);
    read_norm(f);
    if (kernel("layer.attention.rotary") == nullptr) refuse("positions other than rotary");
    return f;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw UserError(Diagnostic{.where = {file_, 0, 0}, .problem = "program \"" + program_.name + "\" has " + what + ", which is not trained for real",
                               .expected = "a dense decoder with RMSNorm, SwiGLU and rotary positions, without biases, in fp32",
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

  // The table has as many rows as the parameters leave for it; none of its own where the ends of one stage are tied.
  void read_table(TransformerFacts& f) const {
    f.tied = std::any_of(program_.instructions.begin(), program_.instructions.end(), [&](const plan::Instruction& i) { return label(i) == "gradient.tied_embedding"; });
    if (!f.first) return;
    for (const plan::Buffer& buffer : program_.buffers) {
      if (buffer.category != plan::Category::kParameters) continue;
      const std::int64_t elements = buffer.size.count() / plan::element_bytes(plan::Dtype::kFp32);
      const std::int64_t layer = 2 * f.hidden + f.hidden * (f.qkv_width() + f.query_width() + 3 * f.ffn);
      const std::int64_t head = f.last ? f.hidden * (f.vocab + 1) : 0;
      const std::int64_t table = elements * shards() - layer * static_cast<std::int64_t>(f.layers.size()) - head;
      // Shards are padded by less than a row.
      const std::int64_t padding = shards() > 1 ? f.hidden : 1;
      if (f.last && table >= 0 && table < padding) {
        f.tied = true;
        return;
      }
      if (table < f.hidden || table % f.hidden >= padding) refuse("parameters other than those of its operators");
      f.vocab = table / f.hidden;
      return;
    }
    refuse("no buffer of parameters");
  }

  // Workers that hold the parameters together (ZeRO 3).
  [[nodiscard]] std::int64_t shards() const {
    for (const plan::Instruction& i : program_.instructions) {
      const auto* c = std::get_if<plan::Collective>(&i.body);
      if (c != nullptr && label(i) == "parameter.unit") return static_cast<std::int64_t>(plan_.members(c->group, rank_).size());
    }
    return 1;
  }

  // RMSNorm takes 4 operations an element, LayerNorm 7. Sequence parallelism leaves each worker its own rows.
  void read_norm(TransformerFacts& f) const {
    const plan::Kernel* norm = kernel("layer.norm1");
    const double whole = 4.0 * static_cast<double>(f.rows * f.hidden);
    f.sequence_parallel = norm != nullptr && f.tp > 1 && f.rows % f.tp == 0 && norm->flops.si() * f.tp == whole;
    if (norm == nullptr || (norm->flops.si() != whole && !f.sequence_parallel)) refuse("norms other than RMSNorm");
  }

  const plan::Plan& plan_;
  RankId rank_;
  const plan::Program& program_;
  plan::PerAxis at_;
  std::string file_;
};

}  // namespace

TransformerFacts read_transformer(const plan::Plan& plan, RankId rank, const std::string& file) { return Reader{plan, rank, file}.read(); }

}  // namespace stepcast::executor
