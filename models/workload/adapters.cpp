#include "models/workload/adapters.hpp"

#include <algorithm>
#include <utility>

#include "models/workload/layer_parts.hpp"

namespace stepcast::workload {

namespace {

// Whether an adapter still reads a tensor that is kept for the gradient of a weight.
bool has_reader(const LayerContext& c, const std::string& name) {
  const Adapters& a = *c.options.adapters;
  if (name == "attention.qkv.input" || name == "attention.q_up.input" || name == "attention.kv_up.input") return a.qkv;
  if (name == "attention.out.input") return a.out;
  // Beside experts the norm's output is read by the router, which is frozen, and by shared experts.
  if (name == "mlp.up.input") return a.up && (!c.experts || c.experts->shared_ffn > 0);
  if (name == "experts.up.input") return a.up;
  if (name == "mlp.down.input" || name == "experts.down.input" || name == "shared.down.input") return a.down;
  return name != "router.input";
}

std::int64_t rows_of(const Linear& l, const LocalDims& d) { return l.groups * (l.rows > 0 ? l.rows : d.rows); }

}  // namespace

std::vector<Linear> adaptable_linears(const LayerContext& c) {
  std::vector<Linear> linears = c.shape.latent ? latent_linears(c) : std::vector<Linear>{c.qkv()};
  linears.push_back(c.out());
  const std::vector<Linear> second = c.experts ? expert_linears(c) : std::vector<Linear>{c.up(), c.down()};
  linears.insert(linears.end(), second.begin(), second.end());
  return linears;
}

std::int64_t adapter_elements(const Linear& l, const LocalDims& d, std::int64_t rank) {
  const auto cut = [&](std::int64_t width) { return (width + d.t - 1) / d.t; };
  const std::int64_t a = l.k * (l.split == Split::kColumns ? cut(rank) : rank);
  const std::int64_t b = rank * (l.split == Split::kRows ? cut(l.n) : l.n);
  return l.groups * (a + b);
}

std::vector<SavedTensor> kept_for_adapters(const LayerContext& c, std::vector<SavedTensor> saved) {
  if (!c.options.adapters) return saved;
  std::erase_if(saved, [&](const SavedTensor& tensor) { return !has_reader(c, tensor.name); });
  for (const Linear& l : adaptable_linears(c)) {
    if (!c.options.adapters->on(l.projection)) continue;
    saved.push_back({l.name + ".lora_b.input", Bytes{rows_of(l, c.d) * c.options.adapters->rank * c.d.bytes}});
  }
  return saved;
}

void freeze(const LocalDims& d, Block& block) {
  block.frozen.dense = Bytes{(block.parameters - block.routed_parameters) * d.bytes};
  block.frozen.routed = Bytes{block.routed_parameters * d.bytes};
  block.parameters = block.routed_parameters = 0;
  block.matrix_count = block.routed_count = 0;
  block.weight_inputs = block.weight_gradients = Bytes{0};
}

void freeze_layer(const LayerContext& c, Block& block) {
  const Adapters& a = *c.options.adapters;
  freeze(c.d, block);
  std::int64_t widest = 0;    // bytes that live within a pass beside the layer's own
  std::int64_t unpacked = 0;
  for (const Linear& l : adaptable_linears(c)) {
    const std::int64_t weights = l.groups * l.n * l.k;
    if (a.base) {
      (l.routed ? block.frozen.routed : block.frozen.dense) += Bytes{packed_bytes(weights) - weights * c.d.bytes};
      block.frozen.scales += Bytes{scale_bytes(*a.base, weights)};
      unpacked = std::max(unpacked, l.n * l.k * c.d.bytes);
    }
    if (!a.on(l.projection)) continue;
    const std::int64_t elements = adapter_elements(l, c.d, a.rank);
    block.parameters += elements;
    block.matrix_count += 2 * l.groups;
    if (l.routed) {
      block.routed_parameters += elements;
      block.routed_count += 2 * l.groups;
    }
    const std::int64_t rows = rows_of(l, c.d);
    // Of columns under sequence parallelism the input is kept as this rank's tokens.
    const std::int64_t input_rows = l.split == Split::kColumns ? c.d.norm_rows : rows;
    block.weight_inputs += Bytes{(input_rows * l.k + rows * a.rank) * c.d.bytes};
    block.weight_gradients += Bytes{rows * (l.n + a.rank) * c.d.bytes};
    widest = std::max(widest, rows * (l.n + std::max(l.n, l.k)) * c.d.bytes);  // B's output scaled; backward s dY and A's dX
  }
  block.forward_workspace += Bytes{std::max(widest, unpacked)};
  block.backward_workspace += Bytes{std::max(widest, unpacked)};
}

std::int64_t whole_adapter_elements(const ModelShape& shape, const BlockOptions& options) {
  const LayerContext c{shape, options, local_dims(shape, options), std::nullopt, std::nullopt};
  std::int64_t elements = 0;
  for (const Linear& l : shape.latent ? latent_linears(c) : std::vector<Linear>{})
    if (l.split == Split::kWhole && options.adapters->on(l.projection)) elements += adapter_elements(l, c.d, options.adapters->rank);
  return elements;
}

AdapterCount count_adapters(const ModelShape& shape, const Adapters& adapters) {
  BlockOptions options;
  options.sequence = 1;
  options.adapters = adapters;
  AdapterCount count;
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    LayerContext c{shape, options, local_dims(shape, options), std::nullopt, std::nullopt};
    if (has_experts(shape, layer)) c.experts = expert_dims(shape, options, c.d);
    for (const Linear& l : adaptable_linears(c)) {
      if (!adapters.on(l.projection)) continue;
      const std::int64_t elements = adapter_elements(l, c.d, adapters.rank);
      count.total += elements;
      count.active += l.routed ? elements / shape.experts->count * shape.experts->top_k : elements;
    }
  }
  return count;
}

}  // namespace stepcast::workload
