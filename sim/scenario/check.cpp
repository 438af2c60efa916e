#include "sim/scenario/check.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "sim/base/text.hpp"

namespace stepcast::scenario {
namespace {

class Checks {
 public:
  Checks(const Scenario& scenario, const Positions& where, Diagnostics& diagnostics)
      : s_{scenario}, where_{where}, diagnostics_{diagnostics} {}

  void all() {
    model_source();
    shape();
    experts();
    fabric();
    networks();
    order();
    batch();
    sharding();
    schedule_file();
    precision();
    recompute();
  }

 private:
  void add(const std::string& path, std::string problem, std::string expected = {}, std::string got = {},
           std::string hint = {}) {
    diagnostics_.add(where_.error(path, std::move(problem), std::move(expected), std::move(got), std::move(hint)));
  }

  void model_source() {
    std::vector<std::string> given;
    for (const char* key : {"hf", "preset", "shape"}) {
      const std::string path = std::string{"model."} + key;
      if (where_.given(path)) given.push_back(path);
    }
    if (given.size() == 1) return;
    const std::string expected = "exactly one of model.hf, model.preset, model.shape";
    if (given.empty()) {
      add("model", "no model is named", expected);
      return;
    }
    std::vector<std::string> cited;
    for (const std::string& path : given) cited.push_back(where_.cite(path));
    add(given[1], "more than one model is named", expected, join(cited, "; "));
  }

  void shape() {
    if (!s_.model.shape) return;
    const InlineShape& shape = *s_.model.shape;
    if (shape.heads > 0 && shape.hidden > 0 && !shape.head_dim && shape.hidden % shape.heads != 0) {
      add("model.shape.heads", fmt::format("{} does not divide the hidden size", shape.heads),
          fmt::format("a divisor of {} ({}), or model.shape.head_dim", shape.hidden, where_.cite("model.shape.hidden")),
          fmt::format("{}", shape.heads));
    }
    if (shape.kv_heads && *shape.kv_heads > 0 && shape.heads % *shape.kv_heads != 0) {
      add("model.shape.kv_heads", fmt::format("{} does not divide the attention heads", *shape.kv_heads),
          fmt::format("a divisor of {} ({})", shape.heads, where_.cite("model.shape.heads")),
          fmt::format("{}", *shape.kv_heads));
    }
    if (shape.max_positions && shape.position != "learned") {
      add("model.shape.max_positions", "only a learned position table has rows",
          fmt::format("position: learned ({})", where_.cite("model.shape.position")), shape.position);
    }
    if (shape.max_positions && *shape.max_positions < s_.model.sequence) {
      add("model.sequence", "longer than the position table",
          fmt::format("at most {} ({})", *shape.max_positions, where_.cite("model.shape.max_positions")),
          fmt::format("{}", s_.model.sequence));
    }
  }

  void experts() {
    if (!s_.model.shape) return;
    const InlineShape& shape = *s_.model.shape;
    const auto needs = [&](const char* key, const char* other, bool there, const char* what) {
      const std::string path = std::string{"model.shape."} + key;
      if (there || !where_.given(path)) return;
      add(path, what, std::string{"model.shape."} + other + ", or no such key");
    };
    needs("full_attention_every", "sliding_window", shape.sliding_window.has_value(), "every layer looks back on everything");
    for (const char* key : {"top_k", "expert_ffn", "shared_experts", "dense_layers", "moe_every"})
      needs(key, "experts", shape.experts.has_value(), "there are no experts");
    for (const char* key : {"q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"})
      needs(key, "kv_lora_rank", shape.kv_lora_rank.has_value(), "there is no latent attention");
    if (shape.experts && shape.top_k > *shape.experts) {
      add("model.shape.top_k", "more experts a token than there are",
          fmt::format("at most {} ({})", *shape.experts, where_.cite("model.shape.experts")), fmt::format("{}", shape.top_k));
    }
    if (shape.experts && shape.dense_layers + shape.moe_every > shape.layers) {
      add(where_.given("model.shape.dense_layers") ? "model.shape.dense_layers" : "model.shape.moe_every", "no layer is left that has experts",
          fmt::format("fewer than {} layers ({})", shape.layers, where_.cite("model.shape.layers")));
    }
    if (shape.kv_lora_rank && (shape.head_dim || shape.kv_heads)) {
      add(shape.head_dim ? "model.shape.head_dim" : "model.shape.kv_heads", "latent attention has its own widths",
          fmt::format("no such key with {}", where_.cite("model.shape.kv_lora_rank")));
    }
  }

  void fabric() {
    const Cluster& cluster = s_.cluster;
    const bool one_domain = cluster.nvlink_domain.value_or(1) >= cluster.nodes;  // NVLink joins all nodes
    if (!cluster.fabric) {
      if (!one_domain) {
        add("cluster.fabric", "missing key",
            fmt::format("the network between the {} nodes ({})", cluster.nodes, where_.cite("cluster.nodes")), {},
            "fabric: {preset: rail-clos}");
      }
      return;
    }
    if (!cluster.fabric->network && !one_domain && cluster.fabric->preset == "none") {
      add("cluster.fabric.preset", "nodes cannot reach each other",
          fmt::format("a network such as clos, clos-3tier, rail-clos for {} nodes ({})", cluster.nodes, where_.cite("cluster.nodes")),
          cluster.fabric->preset);
    }
    fabric_keys(*cluster.fabric, "cluster.fabric");
  }

  // Keys that say nothing beside the others.
  void fabric_keys(const Fabric& fabric, const std::string& at) {
    if (fabric.network) {
      for (const char* key : {"preset", "oversubscription", "leaf_ports", "nodes_per_pod", "core_oversubscription", "shape", "nodes_per_switch",
                              "neighbour_links", "switches_per_group", "global_links"}) {
        const std::string path = at + '.' + key;
        if (where_.given(path)) {
          add(path, "has no meaning beside a network that is written out",
              fmt::format("no such key, or no network ({})", where_.cite(at + ".network")));
        }
      }
      return;
    }
    const std::string& preset = fabric.preset;
    // Where a key says something: keys and the presets that read them.
    const auto meant_for = [&](const char* key, bool says_something, const std::vector<std::string>& presets) {
      if (!says_something || std::find(presets.begin(), presets.end(), preset) != presets.end()) return;
      add(at + '.' + key, "has no meaning in this fabric",
          fmt::format("preset: {} ({}), or no such key", join(presets, " or "), where_.cite(at + ".preset")), preset);
    };
    meant_for("nodes_per_pod", fabric.nodes_per_pod.has_value(),
              {"clos-3tier", "rail-clos-3tier", "meta-rack", "rail-clos", "rail-only", "dual-plane"});
    meant_for("core_oversubscription", fabric.core_oversubscription.value_or(1.0) != 1.0,
              {"clos-3tier", "rail-clos-3tier", "meta-rack"});
    const std::vector<std::string> clos{"clos", "rail-clos", "rail-only", "dual-plane", "clos-3tier", "rail-clos-3tier", "meta-rack"};
    meant_for("oversubscription", fabric.oversubscription != 1.0 && preset != "none", clos);
    meant_for("leaf_ports", fabric.leaf_ports.has_value() && preset != "none", clos);
    meant_for("shape", !fabric.shape.empty(), {"torus", "mesh"});
    meant_for("nodes_per_switch", fabric.nodes_per_switch.has_value(), {"torus", "mesh", "dragonfly"});
    meant_for("neighbour_links", fabric.neighbour_links.has_value(), {"torus", "mesh", "dragonfly"});
    meant_for("switches_per_group", fabric.switches_per_group.has_value(), {"dragonfly"});
    meant_for("global_links", fabric.global_links.has_value(), {"dragonfly"});
  }

  void networks() {
    const Cluster& cluster = s_.cluster;
    if (!cluster.networks.empty() && !cluster.fabric) add("cluster.networks", "beside no network", "cluster.fabric, which joins all nodes");
    for (std::size_t i = 0; i < cluster.networks.size(); ++i)
      fabric_keys(cluster.networks[i].fabric, fmt::format("cluster.networks[{}].fabric", i));
  }

  void order() {
    std::vector<std::string> axes = split(s_.parallel.order, '-');
    std::sort(axes.begin(), axes.end());
    if (axes != std::vector<std::string>{"cp", "dp", "ep", "pp", "tp"}) {
      add("parallel.order", "not an order of the five axes", "tp, cp, ep, dp and pp once each, such as tp-cp-ep-dp-pp",
          s_.parallel.order);
    }
  }

  void batch() {
    const std::int64_t replicas = s_.parallel.dp * s_.batch.micro;
    if (replicas <= 0 || s_.batch.global <= 0 || s_.batch.global % replicas == 0) return;
    const std::int64_t below = s_.batch.global / replicas * replicas;
    add("batch.global", fmt::format("{} sequences do not split into whole micro-batches", s_.batch.global),
        fmt::format("a multiple of {} = dp {} ({}) x micro {} ({})", replicas, s_.parallel.dp, where_.cite("parallel.dp"),
                    s_.batch.micro, where_.cite("batch.micro")),
        fmt::format("{}", s_.batch.global),
        below > 0 ? fmt::format("{} or {}", below, below + replicas) : fmt::format("{}", replicas));
  }

  void sharding() {
    const Parallel& p = s_.parallel;
    if (p.sequence_parallel && p.tp == 1) {
      add("parallel.sequence_parallel", "needs tensor parallelism",
          fmt::format("tp above 1 ({}), or false", where_.cite("parallel.tp")), "true");
    }
    if (p.overlap_tensor_parallel && !p.sequence_parallel) {
      add("parallel.overlap_tensor_parallel", "there are no gathers and scatters to hide",
          fmt::format("sequence_parallel: true ({}), or false", where_.cite("parallel.sequence_parallel")), "true");
    }
    if (!p.shard_group) return;
    if (p.zero == 0) {
      add("parallel.shard_group", "nothing is sharded",
          fmt::format("zero from 1 to 3 ({}), or no such key", where_.cite("parallel.zero")),
          fmt::format("{}", *p.shard_group));
    }
    if (*p.shard_group > 0 && p.dp * p.cp % *p.shard_group != 0) {
      add("parallel.shard_group", fmt::format("{} does not divide the replicas", *p.shard_group),
          p.cp == 1 ? fmt::format("a divisor of {} ({})", p.dp, where_.cite("parallel.dp"))
                    : fmt::format("a divisor of {} = dp {} ({}) x cp {} ({})", p.dp * p.cp, p.dp, where_.cite("parallel.dp"), p.cp, where_.cite("parallel.cp")),
          fmt::format("{}", *p.shard_group));
    }
  }

  void recompute() {
    const MemoryPolicy& m = s_.memory;
    const MemoryPolicy usual;
    const auto meant_for = [&](const char* key, bool says_something, RecomputePolicy policy, const char* word) {
      if (m.recompute == policy || !says_something) return;
      add(std::string{"memory."} + key, fmt::format("says nothing without {} recomputation", word),
          fmt::format("recompute: {} ({}), or no such key", word, where_.cite("memory.recompute")));
    };
    meant_for("recompute_modules", m.recompute_modules != usual.recompute_modules, RecomputePolicy::kSelective, "selective");
    meant_for("recompute_method", m.recompute_method != usual.recompute_method, RecomputePolicy::kFull, "full");
    meant_for("recompute_layers", m.recompute_layers != usual.recompute_layers, RecomputePolicy::kFull, "full");
  }

  void schedule_file() {
    const Parallel& p = s_.parallel;
    if (p.schedule == Schedule::kFile && !p.schedule_file) {
      add("parallel.schedule", "no schedule is written", "parallel.schedule_file with its lists", "file");
    }
    if (p.schedule != Schedule::kFile && p.schedule_file) {
      add("parallel.schedule_file", "has no meaning beside a named schedule",
          fmt::format("schedule: file ({}), or no such key", where_.cite("parallel.schedule")));
    }
  }

  void precision() {
    const bool low = s_.training.precision == Precision::kBf16 || s_.training.precision == Precision::kFp16 ||
                     s_.training.precision == Precision::kFp8;
    if (!low && s_.memory.gradients != GradientPrecision::kFp32) {
      add("memory.gradients", "coarser than the parameters",
          fmt::format("fp32 ({})", where_.cite("training.precision")),
          s_.memory.gradients == GradientPrecision::kBf16 ? "bf16" : "fp16");
    }
  }

  const Scenario& s_;
  const Positions& where_;
  Diagnostics& diagnostics_;
};

}  // namespace

void check_scenario(const Scenario& scenario, const Positions& where, Diagnostics& diagnostics) {
  Checks{scenario, where, diagnostics}.all();
  if (scenario.cluster.gpus_per_node) {
    check_worker_count(scenario, where, *scenario.cluster.gpus_per_node, where.cite("cluster.gpus_per_node"), diagnostics);
  }
}

void check_worker_count(const Scenario& scenario, const Positions& where, std::int64_t gpus_per_node,
                        const std::string& origin, Diagnostics& diagnostics) {
  const Parallel& p = scenario.parallel;
  // Each factor is at most 1e6, so products are compared as they grow, before they could overflow.
  const std::int64_t gpus = scenario.cluster.nodes * gpus_per_node;
  const double workers = static_cast<double>(p.tp) * static_cast<double>(p.cp) * static_cast<double>(p.dp) *
                         static_cast<double>(p.pp);
  if (workers == static_cast<double>(gpus)) return;
  const std::string blamed = where.given("parallel.dp")   ? "parallel.dp"
                             : where.given("parallel.tp") ? "parallel.tp"
                             : where.given("parallel.pp") ? "parallel.pp"
                                                          : "parallel";
  std::string hint;
  const double replica = workers / static_cast<double>(p.dp);
  if (static_cast<double>(gpus) >= replica) {
    const auto fit = static_cast<std::int64_t>(static_cast<double>(gpus) / replica);
    if (static_cast<double>(fit) * replica == static_cast<double>(gpus)) hint = fmt::format("dp: {} fills it", fit);
  }
  diagnostics.add(where.error(
      blamed, "the workers do not match the GPUs",
      fmt::format("tp x pp x dp x cp = {} = {} node{} ({}) x {} GPU{} ({})", gpus, scenario.cluster.nodes,
                  scenario.cluster.nodes == 1 ? "" : "s", where.cite("cluster.nodes"), gpus_per_node,
                  gpus_per_node == 1 ? "" : "s", origin),
      fmt::format("{:.0f} = tp {} ({}) x pp {} ({}) x dp {} ({}) x cp {} ({})", workers, p.tp, where.cite("parallel.tp"),
                  p.pp, where.cite("parallel.pp"), p.dp, where.cite("parallel.dp"), p.cp, where.cite("parallel.cp")),
      hint));
}

}  // namespace stepcast::scenario
