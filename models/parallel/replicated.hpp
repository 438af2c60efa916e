// models/parallel/replicated.hpp — ZeRO 0 to 2: every worker holds all parameters of its stage. See
// data_parallel.hpp.
#pragma once

#include <optional>
#include <vector>

#include "models/parallel/bucket.hpp"
#include "models/parallel/data_parallel.hpp"
#include "models/parallel/scatter_queue.hpp"

namespace stepcast::parallel {

class Replicated final : public DataParallel {
 public:
  explicit Replicated(const DataParallelContext& context);

  void begin_step() override;
  void begin_action(std::size_t action) override;
  void before_forward(std::size_t block) override;
  void before_backward_step(std::size_t block, std::size_t step) override;
  void after_backward_step(std::size_t block, std::size_t step) override;
  void finish_gradients() override;
  void end_step() override;

 private:
  [[nodiscard]] bool sharded_states() const { return context_.strategy.zero >= 1; }
  [[nodiscard]] bool sharded_gradients() const { return shards_gradients(context_.strategy); }
  [[nodiscard]] bool casts() const { return reduce_dtype(context_.strategy) != context_.strategy.gradient_dtype; }
  void hold_copies();
  void reduce(const Bucket& bucket);
  void gather_parameters(const Bucket& bucket);

  DataParallelContext context_;
  plan::StreamId stream_;         // dp, or compute where nothing overlaps
  plan::StreamId gather_stream_;
  std::vector<Bucket> buckets_;   // in the order of readiness
  std::optional<ScatterQueue> scatters_;             // ZeRO-2
  std::vector<std::optional<plan::BufferId>> open_;  // ZeRO-2: the bucket's full gradient
  std::vector<std::optional<plan::EventId>> gathered_;  // by bucket, of the gather at the start
  std::vector<std::size_t> last_action_;  // by chunk: completes its gradients
  bool reducing_ = false;         // in this action
  std::size_t next_ready_ = 0;
};

}  // namespace stepcast::parallel
