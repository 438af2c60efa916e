#include "calibration/truth_row.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "calibration/truth_cluster.hpp"
#include "calibration/truth_layers.hpp"
#include "calibration/truth_megatron.hpp"
#include "calibration/truth_memory_words.hpp"
#include "calibration/truth_offload.hpp"
#include "calibration/truth_recipes.hpp"
#include "calibration/truth_recompute.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/text.hpp"

namespace stepcast::calibration {
namespace {

constexpr std::array<std::string_view, 8> kRequiredColumns{"row_id", "gpu", "n_gpus", "layers",
                                                           "hidden", "heads", "seq_len", "global_batch"};

// What a peak of memory hardly depends on.
bool is_about_time(std::string_view column) { return column == "n_gpus" || column == "global_batch"; }

// How a framework runs what its rows do not say. First match of the start of the name wins.
struct Framework {
  std::string_view prefix;
  std::string_view attention;  // the scenario's word
  bool fused_kernels;          // compiled or hand-fused norms and activations, else one kernel an operator
  bool fused_loss;
  bool fused_accumulation;     // of weight gradients, in their GEMM
  bool overlaps_gradients;
  bool gradients_fp32;    // accumulated and reduced in fp32, else in the training precision
  double dropout;
  std::string_view host_waits;  // the scenario's word; "messages": unless interleaved
};
constexpr std::array kFrameworks{
    // Megatron-LM before Megatron-Core: fused softmax, bias+GELU and bias+dropout+add kernels, an eager cross-entropy,
    // gradients added by a kernel for each parameter (their fusion came with v3.0), local DDP that reduces after the
    // backward pass, dropout 0.1 (arguments.py of v2.0 to v2.5; Narayanan et al. 2021, section 5). Its timers of forward and
    // backward passes synchronise the device (megatron/__init__ and timers.py, until log levels came after v3.0).
    Framework{"Megatron-LM Sep 2020", "unfused", true, false, false, false, false, 0.1, "passes"},
    Framework{"Megatron-LM v2", "unfused", true, false, false, false, false, 0.1, "passes"},
    Framework{"Megatron-LM PTD-P", "unfused", true, false, false, false, false, 0.1, "passes"},
    Framework{"Megatron-DeepSpeed", "unfused", true, false, false, false, false, 0.1, "passes"},
    Framework{"Megatron + D", "unfused", true, false, false, false, false, 0.1, "passes"},
    // The papers on Megatron-LM of 2022 (Korthikanti et al.) and what reports of that time call Megatron: the same, with the
    // accumulation of gradients fused into their GEMMs (v3.0).
    Framework{"Megatron-LM@", "flash", true, false, true, true, true, 0.0, "passes"},
    Framework{"Megatron-LM", "unfused", true, false, true, false, true, 0.1, "passes"},
    // Megatron-Core: cross_entropy_loss_fusion is off unless asked for; batch_p2p_sync synchronises the device after each message
    // unless overlap_p2p_comm, which comes with interleaving.
    Framework{"Megatron-Core", "flash", true, false, true, true, true, 0.0, "messages"},
    Framework{"Megatron-Bridge", "flash", true, false, true, true, true, 0.0, "messages"},
    Framework{"Megatron", "flash", true, false, true, true, true, 0.0, "messages"},
    Framework{"DeepSpeed", "unfused", true, false, false, true, false, 0.1, "never"},
    // llm-foundry: eager PyTorch modules, but a fused cross-entropy (loss_fn: fused_crossentropy); reduction precision by its
    // mixed-precision mode (below).
    Framework{"Composer", "flash-1", false, true, false, true, true, 0.0, "never"},
    // NeMo-Framework-Launcher 23.08, gpt3/*.yaml: masked_softmax_fusion without use_flash_attention, both dropouts 0.1.
    Framework{"NeMo Framework", "unfused", true, false, true, true, true, 0.1, "messages"},
    // NeMo-Framework-Launcher until 24.07, conf/config.yaml: NVTE_FUSED_ATTN: 0 ("until we've tested it more"), so that
    // Transformer Engine takes flash-attention 2 on Hopper too.
    Framework{"NeMo container 24", "flash-2", true, true, true, true, true, 0.0, "messages"},
    // torchtitan: scaled_dot_product_attention, whose flash backend is flash-attention 2; compiled blocks.
    Framework{"torchtitan", "flash-2", true, true, false, true, true, 0.0, "never"},
    // The FSDP paper's minGPT of 2022: eager modules, scores and softmax as operators of their own (karpathy/minGPT,
    // dropouts 0.1).
    Framework{"PyTorch FSDP", "unfused", false, false, false, true, false, 0.1, "never"},
    // Hugging Face transformers' GPT-2 (GPT2LMHeadModel): one operator after the other, dropouts 0.1; torch's cross-entropy, the first
    // gradient of a step taken as it is.
    Framework{"transformers", "unfused", false, true, true, true, true, 0.1, "never"},
    Framework{"", "flash", true, true, true, true, true, 0.0, "never"},
};

const Framework& framework_of(std::string_view name) {
  return *std::find_if(kFrameworks.begin(), kFrameworks.end(),
                       [&](const Framework& f) { return name.starts_with(f.prefix); });
}

class RowReader {
 public:
  RowReader(const CsvTable& table, const CsvTable::Row& row) : table_{table}, row_{row} {}

  std::string text(std::string_view column) const {
    const std::optional<std::size_t> index = table_.column(column);
    return index ? std::string{trim(row_.fields[*index])} : std::string{};
  }

  std::optional<double> number(std::string_view column) const {
    const std::string value = text(column);
    if (value.empty()) return std::nullopt;
    const std::optional<double> parsed = parse_number(value);
    if (!parsed) {
      throw UserError(Diagnostic{.where = {table_.file(), row_.line, 1},
                                 .path = std::string{column},
                                 .problem = "not a number",
                                 .expected = "a number or nothing",
                                 .got = value});
    }
    return parsed;
  }

  std::optional<std::int64_t> integer(std::string_view column) const {
    const std::optional<double> value = number(column);
    if (!value) return std::nullopt;
    constexpr double kMost = 1e15;  // beyond any count, exact in a double
    if (*value != std::trunc(*value) || std::abs(*value) > kMost) {
      throw UserError(Diagnostic{.where = {table_.file(), row_.line, 1},
                                 .path = std::string{column},
                                 .problem = "not a count",
                                 .expected = "a whole number or nothing",
                                 .got = text(column)});
    }
    return static_cast<std::int64_t>(*value);
  }

 private:
  const CsvTable& table_;
  const CsvTable::Row& row_;
};

bool has_adapters(const std::string& task) { return task == "lora" || task == "qlora"; }

// What this version does not model, as a reason; empty when the row is of a kind it does.
std::string unmodelled(const RowReader& row) {
  const std::string task = row.text("task");
  if (!task.empty() && task != "pretrain" && !task.starts_with("sft") && !has_adapters(task)) return fmt::format("task '{}' is not modelled", task);
  const std::string recompute = row.text("recompute");
  if (!recompute_words(recompute)) return fmt::format("recompute '{}' is not modelled yet", recompute);
  return {};
}

std::optional<std::string> precision_of(const std::string& written) {
  std::string stated = written;
  for (char& c : stated) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (stated.starts_with("mxfp8")) return "fp8";
  if (stated.starts_with("bf16") || stated == "amp_bf16") return "bf16";
  if (stated.starts_with("fp16") || stated == "amp_fp16") return "fp16";
  if (stated.starts_with("fp8") || stated == "amp_fp8") return "fp8";
  if (stated == "fp32" || stated == "tf32") return stated;
  return std::nullopt;
}

class RowTranslator {
 public:
  RowTranslator(const RowReader& row, const topology::Catalogue& catalogue, TruthRow& out)
      : row_{row}, catalogue_{catalogue}, out_{out} {}

  void run() {
    out_.refusal = unmodelled(row_);
    if (!out_.refusal.empty()) return;
    for (const std::string_view column : {"n_gpus", "gpus_per_node", "tp", "pp", "dp", "cp", "ep", "etp"}) {
      if (row_.integer(column).value_or(1) >= 1) continue;
      out_.refusal = fmt::format("{} is less than one", column);  // GPUs are divided by these
      return;
    }
    count_gpus();
    const std::string name = row_.text("model"), notes = row_.text("notes"), gpu = row_.text("gpu");
    const std::string framework = row_.text("framework"), source_loc = row_.text("source_loc"), source = row_.text("source");
    recipe_ = recipe_of({.framework = framework, .model = name, .gpu = gpu, .source = source, .source_loc = source_loc, .gpus = gpus_,
                         .tensor_parallel = row_.integer("tp").value_or(1), .zero = row_.integer("zero").value_or(0),
                         .sequence_parallel = row_.integer("seq_parallel").value_or(0) == 1});
    out_.machine = recipe_.machine;
    if (!out_.machine.empty()) out_.assumed.push_back("the machine's own profile " + out_.machine);
    if (framework.starts_with("Megatron-Core"))
      test_ = megatron_test({.model = name, .notes = notes, .gpu = gpu, .hidden = *row_.integer("hidden"), .scores = scores(),
                             .context_parallel = row_.integer("cp").value_or(1) > 1, .experts = row_.integer("experts").value_or(1) > 1});
    if (test_ && !test_->refusal.empty()) {
      out_.refusal = test_->refusal;
      return;
    }
    layers_ = layer_words({.attention = row_.text("attn_kind"),
                           .experts = row_.integer("experts"),
                           .top_k = row_.integer("moe_topk"),
                           .expert_ffn = row_.integer("moe_ffn"),
                           .head_dim = row_.integer("head_dim"),
                           .ffn = row_.integer("ffn"),
                           .sequence = row_.integer("seq_len").value_or(0)});
    out_.refusal = layers_.refusal;
    if (!out_.refusal.empty()) return;
    out_.assumed.insert(out_.assumed.end(), layers_.assumed.begin(), layers_.assumed.end());
    const std::optional<TruthCluster> cluster = place(catalogue_, cluster_request(), out_.assumed, out_.refusal);
    if (!cluster) return;
    if (!add_parallel()) return;
    out_.scenario = fmt::format("name: {}\nmodel:\n{}cluster:\n{}{}", out_.id, model(), cluster->yaml, rest_);
  }

 private:
  TruthClusterRequest cluster_request() const {
    return {.gpu = row_.text("gpu"),
            .gpu_memory_gb = row_.number("gpu_mem_gb"),
            .gpus = gpus_,
            .gpus_per_node = row_.integer("gpus_per_node"),
            .intra_node = row_.text("intra_node"),
            .inter_node = row_.text("inter_node"),
            .node_gbit_per_s = row_.number("net_gbps_per_node")};
  }

  // Whose layers run.
  [[nodiscard]] const Framework& layers_by() const { return framework_of(recipe_.modules.empty() ? row_.text("framework") : recipe_.modules); }

  std::string model() {
    const bool gated = row_.integer("gated_mlp").value_or(0) == 1;
    const std::int64_t hidden = *row_.integer("hidden");
    const bool alibi = row_.text("attn_kind").starts_with("ALiBi") || row_.text("model").starts_with("MPT");
    const Framework& framework = layers_by();
    std::string shape = fmt::format("layers: {}, hidden: {}, heads: {}, vocab: {}", *row_.integer("layers"), hidden,
                                    *row_.integer("heads"), vocab());
    const auto optional = [&](const char* key, const char* column) {
      if (const auto value = row_.integer(column)) shape += fmt::format(", {}: {}", key, *value);
    };
    if (!layers_.latent) {
      optional("kv_heads", "kv_heads");
      optional("head_dim", "head_dim");
    }
    optional("ffn", "ffn");
    shape += layers_.shape;
    if (test_) return model_of_test(shape, gated);
    // Gated MLPs come with Llama's habits, the others with GPT's: norm, positions, biases, tied embeddings.
    shape += gated ? ", gated_mlp: true, norm: rmsnorm, position: rotary"
                   : fmt::format(", norm: layernorm, tied_embeddings: true, bias: {}, position: {}",
                                 row_.text("model").starts_with("MPT") ? "false" : "true", alibi ? "alibi" : "learned");
    std::string attention{framework.attention};
    if (!recipe_.attention.empty()) attention = recipe_.attention;
    if (row_.text("attn_kind").find("unfused") != std::string::npos) attention = "unfused";
    return fmt::format("  shape: {{{}}}\n  sequence: {}\n  attention: {}\n  dropout: {}\n  fused_kernels: {}\n"
                       "  fused_loss: {}\n  fused_accumulation: {}\n{}", shape,
                       *row_.integer("seq_len"), attention, framework.dropout, framework.fused_kernels, framework.fused_loss,
                       framework.fused_accumulation, recipe_.whole_vocabulary ? "  vocab_padding: 1\n" : "");
  }

  std::int64_t vocab() {
    constexpr std::int64_t kMultiple = 128;
    if (const auto stated = row_.integer("vocab")) {
      if (!recipe_.pads_vocabulary || *stated % kMultiple == 0) return *stated;
      const std::int64_t multiple = kMultiple * row_.integer("tp").value_or(1);
      return (*stated + multiple - 1) / multiple * multiple;
    }
    constexpr std::int64_t kUsual = 51200;
    const std::int64_t assumed = test_ && test_->vocab ? *test_->vocab : kUsual;
    out_.assumed.push_back(fmt::format("vocabulary of {}", assumed));
    return assumed;
  }

  // A functional test of Megatron-Core says more than a framework's habits.
  [[nodiscard]] std::string model_of_test(const std::string& shape, bool gated) const {
    std::string rest = fmt::format(", gated_mlp: {}, norm: {}, position: {}, tied_embeddings: {}, bias: {}, qk_norm: {}", gated,
                                   test_->rms_norm ? "rmsnorm" : "layernorm", test_->rotary ? "rotary" : "learned", test_->tied,
                                   test_->bias, test_->qk_norm);
    return fmt::format("  shape: {{{}{}}}\n  sequence: {}\n  attention: {}\n  dropout: {}\n  fused_kernels: true\n"
                       "  fused_loss: {}\n  fused_accumulation: {}\n  grouped_experts: {}\n", shape, rest, *row_.integer("seq_len"),
                       test_->unfused_attention ? "unfused" : "flash", test_->dropout, test_->fused_loss, test_->fused_accumulation, test_->grouped_experts);
  }

  [[nodiscard]] std::int64_t scores() const {
    const std::int64_t sequence = *row_.integer("seq_len");
    return row_.integer("micro_batch").value_or(1) * *row_.integer("heads") / row_.integer("tp").value_or(1) * sequence * sequence;
  }

  [[nodiscard]] std::int64_t model_ranks() const {
    return row_.integer("tp").value_or(1) * row_.integer("pp").value_or(1) * row_.integer("cp").value_or(1);
  }

  void count_gpus() {
    if (const auto stated = row_.integer("n_gpus")) {
      gpus_ = *stated;
      return;
    }
    constexpr std::int64_t kUsual = 64;  // eight nodes: as few as hold Megatron-LM's bert_release (tp 8, pp 8)
    gpus_ = model_ranks() * std::max<std::int64_t>(1, row_.integer("dp").value_or(kUsual / model_ranks()));
    out_.assumed.push_back(fmt::format("{} GPUs", gpus_));
  }

  // Twice as many micro-batches as fill the pipeline, where the row does not say: their number is no matter to memory.
  std::int64_t global_batch(std::int64_t dp, std::int64_t micro) {
    if (const auto stated = row_.integer("global_batch")) return *stated;
    out_.assumed.emplace_back("enough micro-batches to fill the pipeline");
    return 2 * row_.integer("pp").value_or(1) * dp * micro;
  }

  // torchtitan cuts a replica's batch into as many micro-batches as there are stages, unless told otherwise (config
  // pipeline_parallel_microbatches); others' rows that do not say get one sequence.
  std::int64_t micro_batch(std::int64_t dp, std::int64_t pp) {
    if (const std::int64_t stated = row_.integer("micro_batch").value_or(0); stated > 0) return stated;
    const std::int64_t global = row_.integer("global_batch").value_or(0);
    const bool cut = pp > 1 && global > 0 && global % (dp * pp) == 0 && row_.text("framework").starts_with("torchtitan");
    const std::int64_t micro = cut ? global / (dp * pp) : 1;
    out_.assumed.push_back(fmt::format("micro-batch of {}", micro));
    if (!cut && out_.memory.stated()) {
      out_.memory = {};  // of a micro-batch that we do not know
      out_.assumed.emplace_back("memory not compared");
      if (!out_.step_s) out_.refusal = "no micro_batch stated, which memory depends on";
    }
    return micro;
  }

  bool add_parallel() {
    const std::int64_t tp = row_.integer("tp").value_or(1);
    const std::int64_t pp = row_.integer("pp").value_or(1);
    const std::int64_t cp = row_.integer("cp").value_or(1);
    const std::int64_t dp = row_.integer("dp").value_or(std::max<std::int64_t>(1, gpus_ / model_ranks()));
    const std::string stated_offload = row_.text("offload"), row_notes = row_.text("notes");
    const OffloadWords offload = offload_words({.stated = stated_offload, .notes = row_notes, .zero = row_.integer("zero").value_or(0)});
    if (!offload.refusal.empty()) {
      out_.refusal = offload.refusal;
      return false;
    }
    out_.assumed.insert(out_.assumed.end(), offload.assumed.begin(), offload.assumed.end());
    const std::int64_t zero = offload.zero;
    const std::int64_t micro = micro_batch(dp, pp);
    if (!out_.refusal.empty()) return false;
    const std::string precision = row_.text("precision");
    const std::optional<std::string> word = precision_of(precision);
    if (!word) {
      out_.refusal = precision.empty() ? "no precision stated" : fmt::format("precision '{}' is not modelled yet", precision);
      return false;
    }
    const std::string recompute = row_.text("recompute").empty() ? recipe_.recompute : row_.text("recompute");
    if (row_.text("recompute").empty()) out_.assumed.push_back(recompute.empty() ? "no recompute" : "recompute " + recompute);
    const Framework& framework = layers_by();
    const bool pure = row_.text("notes").find("MP mode PURE") != std::string::npos;
    // LLaMA-Factory as IST-DASLab/llmq ran it (benchmarks/*/*.yaml, ds_z*_offload.json): pure_bf16 without DeepSpeed, with it
    // bf16_master_weights_and_grads, whose moments stay in fp32.
    const bool factory = row_.text("framework").starts_with("LLaMA-Factory");
    const bool bf16_master = factory && zero > 0;
    const bool bf16_states = (factory && zero == 0) || precision.find("bf16 master/optimizer states") != std::string::npos;
    const bool fp32_gradients = !bf16_states && !factory && ((framework.gradients_fp32 && !pure) || precision.find("fp32 grad") != std::string::npos);
    const std::string low = *word == "fp16" ? "fp16" : "bf16";
    const std::string name = row_.text("framework"), gpu = row_.text("gpu"), notes = row_.text("notes"), source = row_.text("source_loc");
    memory_words_ = memory_words({.framework = name, .gpu = gpu, .notes = notes, .source = source, .fp32_gradients = fp32_gradients,
                                  .pipeline = pp > 1, .tensor_parallel = tp > 1,
                                  .fused_loss = test_ && test_->fused_loss, .bucket_elements = recipe_.bucket_elements,
                                  .library_workspace = test_ ? std::string_view{test_->library_workspace} : std::string_view{}});
    rest_ = fmt::format(
        "parallel: {{tp: {}, pp: {}, dp: {}, zero: {}, overlap_grad_reduce: {}{}{}{}}}\n"
        "batch: {{global: {}, micro: {}}}\n"
        "memory: {{{}, gradients: {}{}}}\n"
        "training: {{precision: {}{}{}}}\n",
        tp, pp, dp, zero, framework.overlaps_gradients || zero >= 2,
        parallel_sequences(tp),
        long_and_sparse(cp, tp) + shard_group(dp * cp, zero) + memory_words_.parallel + offload.parallel + (zero == 3 && recipe_.gathers_on_use ? ", prefetch: 0, gather_by_matrix: true" + copies_per_shard() : ""), virtual_stages(),
        global_batch(dp, micro), micro, *recompute_words(recompute), fp32_gradients ? "fp32" : low, (bf16_states ? ", fp32_master: false, optimizer_states: bf16" : bf16_master ? ", fp32_master: false" : "") + memory_words_.memory + offload.memory, *word,
        lora() + memory_words_.training, host_waits(framework, pp));
    return true;
  }

  // Rows do not state their adapters. NeMo's and Megatron-Bridge's recipes for performance put them on linear_qkv;
  // a rank of 16 or 8, which costs next to nothing either way.
  std::string lora() {
    const std::string task = row_.text("task");
    if (!has_adapters(task)) return "";
    out_.assumed.emplace_back("adapters of rank 16 on queries, keys and values");
    return fmt::format(", lora: {{rank: 16, targets: [qkv]{}}}", task == "qlora" ? ", base: nf4" : "");
  }

  std::string virtual_stages() const {
    const std::int64_t chunks = row_.integer("vpp").value_or(1);
    return chunks > 1 ? fmt::format(", virtual_stages: {}", chunks) : "";
  }

  [[nodiscard]] std::string host_waits(const Framework& framework, std::int64_t pp) const {
    if (recipe_.launches_block) return ", host_waits: kernels";
    if (recipe_.gathers_wait) return ", host_waits: gathers";
    if (recipe_.gathers_on_use && offloads_optimizer() && row_.integer("zero").value_or(0) == 3) return ", host_waits: gradients";
    const bool on_messages = framework.host_waits == "messages";
    if (framework.host_waits == "never" || (on_messages && (pp == 1 || row_.integer("vpp").value_or(1) > 1))) return "";
    return fmt::format(", host_waits: {}", framework.host_waits);
  }

  [[nodiscard]] bool offloads_optimizer() const { return row_.text("offload").find("optimizer") != std::string::npos; }

  [[nodiscard]] std::string copies_per_shard() const {
    std::string words;
    if (recipe_.copies_per_shard > 0) words += fmt::format(", copies_per_shard: {}", recipe_.copies_per_shard);
    if (recipe_.copies_per_gathered_shard > 0) words += fmt::format(", copies_per_gathered_shard: {}", recipe_.copies_per_gathered_shard);
    return words;
  }

  // Stated with the row; Megatron asks for sequence parallelism with it.
  bool hides_tensor_parallel() const { return row_.text("notes").find("tp-comm-overlap") != std::string::npos; }

  std::string parallel_sequences(std::int64_t tp) {
    if (!sequence_parallel(tp)) return "";
    return hides_tensor_parallel() ? ", sequence_parallel: true, overlap_tensor_parallel: true" : ", sequence_parallel: true";
  }

  // Megatron-Core asks for it where tensor-parallel ranks have experts or latents.
  bool sequence_parallel(std::int64_t tp) {
    if (tp == 1) return false;
    if (row_.integer("seq_parallel").value_or(0) == 1 || hides_tensor_parallel()) return true;
    if (row_.integer("experts").value_or(1) <= 1 && !layers_.latent) return false;
    out_.assumed.emplace_back("sequence parallelism");
    return true;
  }

  // Transformer Engine's ring (p2p) unless the framework is torchtitan, whose ring gathers first.
  std::string long_and_sparse(std::int64_t cp, std::int64_t tp) {
    std::string words;
    if (cp > 1) words += fmt::format(", cp: {}, cp_style: {}", cp, row_.text("framework").starts_with("torchtitan") ? "all-gather" : "ring");
    if (row_.integer("experts").value_or(1) <= 1) return words;
    const std::int64_t ep = row_.integer("ep").value_or(1);
    words += fmt::format(", ep: {}", ep);
    const std::int64_t per_host = row_.integer("gpus_per_node").value_or(8);
    if (recipe_.dispatches_by_host && ep > per_host && ep % per_host == 0 && row_.text("intra_node").find("domain") == std::string::npos) {
      words += fmt::format(", ep_within: {}", per_host);
      out_.assumed.emplace_back("tokens dispatched once a host");
    }
    const std::optional<std::int64_t> stated = row_.integer("etp");
    if (const auto etp = stated ? stated : recipe_.expert_tp; etp && *etp != tp) words += fmt::format(", etp: {}", *etp);
    return words;
  }

  std::string shard_group(std::int64_t dp, std::int64_t zero) const {
    const std::optional<std::int64_t> group = row_.integer("shard_group");
    return zero >= 1 && group && *group < dp ? fmt::format(", shard_group: {}", *group) : "";
  }

  const RowReader& row_;
  const topology::Catalogue& catalogue_;
  TruthRow& out_;
  LayerWords layers_;
  Recipe recipe_;
  std::optional<MegatronTest> test_;
  MemoryWords memory_words_;
  std::int64_t gpus_ = 0;
  std::string rest_;
};

}  // namespace

std::vector<TruthRow> read_truth_table(const CsvTable& table, const topology::Catalogue& catalogue) {
  for (const std::string_view column : kRequiredColumns) static_cast<void>(table.require_column(column));
  std::vector<TruthRow> rows;
  for (const CsvTable::Row& csv : table.rows()) {
    const RowReader row{table, csv};
    TruthRow out{.id = row.text("row_id"), .family = row.text("family"), .line = csv.line};
    out.complete = row.text("complete") == "2";
    out.step_s = row.number("step_s");
    if (!out.step_s) out.step_s = row.number("step_s_derived");
    if (out.step_s && (*out.step_s < 1e-9 || *out.step_s > 1e9)) {
      throw UserError(Diagnostic{.where = {table.file(), csv.line, 1}, .path = "step_s", .problem = "not the time of a step", .expected = "a number of seconds above zero (1e-9 to 1e9), or nothing where none was measured", .got = fmt::format("{}", *out.step_s)});
    }
    out.memory = memory_figure(row.number("mem_gib"), row.text("mem_kind"));
    for (const std::string_view column : kRequiredColumns) {
      if (!row.text(column).empty() || !out.refusal.empty()) continue;
      if (out.memory.stated() && is_about_time(column)) {
        out.step_s.reset();  // of a batch or a number of GPUs that we do not know
        continue;
      }
      out.refusal = fmt::format("no {} stated", column);
    }
    if (out.refusal.empty()) RowTranslator{row, catalogue, out}.run();
    rows.push_back(std::move(out));
  }
  return rows;
}

}  // namespace stepcast::calibration
