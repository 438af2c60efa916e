#include "models/gpu/attention.hpp"

#include <algorithm>

namespace stepcast::gpu {

namespace {
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
}  // namespace

BlockCount count_blocks(const plan::AttentionShape& shape, std::int64_t query_block, std::int64_t key_block) {
  BlockCount count;
  count.items = ceil_div(shape.query_length, query_block);
  // Queries are the last positions of the keys.
  const std::int64_t offset = shape.kv_length - shape.query_length;
  for (std::int64_t i = 0; i < count.items; ++i) {
    const std::int64_t last_query = std::min((i + 1) * query_block, shape.query_length) - 1 + offset;
    const std::int64_t first_query = i * query_block + offset;
    const std::int64_t end = shape.causal ? last_query + 1 : shape.kv_length;
    const std::int64_t begin = shape.window ? std::max<std::int64_t>(0, first_query - *shape.window + 1) : 0;
    const std::int64_t blocks = ceil_div(end, key_block) - begin / key_block;
    count.longest = std::max(count.longest, blocks);
    count.total += blocks;
  }
  return count;
}

double attention_seconds(const GpuParameters& gpu, const plan::AttentionShape& shape, plan::Dtype dtype,
                         plan::Pass pass, double bytes) {
  const AttentionParameters& a = gpu.attention;
  const double sms = static_cast<double>(gpu.hardware.sm_count);
  const bool backward = pass != plan::Pass::kForward;
  const double peak_per_sm = gpu.hardware.peak[static_cast<std::size_t>(dtype)].si() / sms;
  const double scores = static_cast<double>(a.query_block * a.key_block);
  const double dims = static_cast<double>(shape.head_dim + shape.value_dim);
  // Forward: QK^T and PV. Backward: those of dQ, dK, dV, dP and the recomputed scores.
  const double products = backward ? 2.5 : 1.0;
  const double efficiency = backward ? a.backward_mma_efficiency : a.mma_efficiency;
  const double multiply = products * 2.0 * scores * dims / (efficiency * peak_per_sm);
  const double softmax = scores / (a.scores_per_clock * gpu.hardware.clock.si());
  const double step = std::max(multiply, softmax) + (1.0 - a.softmax_overlap) * std::min(multiply, softmax);

  const BlockCount count = count_blocks(shape, a.query_block, a.key_block);
  const double heads = static_cast<double>(shape.batch * shape.query_heads);
  const double all = heads * (static_cast<double>(count.total) * step +
                              static_cast<double>(count.items) * a.block_overhead.seconds());
  const double longest = static_cast<double>(count.longest) * step + a.block_overhead.seconds();
  const double moving = bytes / (gpu.memory.streaming_efficiency * gpu.hardware.memory_bandwidth.si());
  const auto free = static_cast<double>(gpu.hardware.free_sms());
  const double items = heads * static_cast<double>(count.items);
  const double tail = items > free ? a.tail_share * (1.0 - free / items) * longest : 0.0;
  return std::max({all / free + tail, longest, moving});
}

}  // namespace stepcast::gpu
