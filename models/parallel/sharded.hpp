// models/parallel/sharded.hpp — ZeRO-3 and FSDP: parameters live as shards. See data_parallel.hpp.
#pragma once

#include <optional>
#include <vector>

#include "models/parallel/data_parallel.hpp"
#include "models/parallel/scatter_queue.hpp"

namespace stepcast::parallel {

class Sharded final : public DataParallel {
 public:
  explicit Sharded(const DataParallelContext& context);

  void begin_action(std::size_t action) override;
  void before_forward(std::size_t block) override;
  void after_forward(std::size_t block) override;
  void before_backward(std::size_t block) override;
  void after_backward(std::size_t block) override;
  void finish_gradients() override;

 private:
  // What is gathered, used and reduced as a whole.
  struct Unit {
    Elements elements;             // sharded ones; experts without replicas are not
    Elements brought;              // before each use: those, or all that come from the host
    Bytes frozen_dense;            // gathered with them, never reduced
    Bytes frozen_routed;
    Bytes saved_dense;             // by gathers in fp8
    Bytes saved_routed;
    Matrices matrices;             // dense weights
    bool keeps = false;           // gathered while any micro-batch is in flight
    std::size_t gradients_left = 0;  // blocks whose backward is still to come in this action
    std::size_t blocks = 0;
    std::optional<plan::BufferId> parameters;  // while gathered
    std::optional<plan::BufferId> gradient;
  };
  // One pass of one block, in the order of the whole step.
  struct Use {
    std::size_t unit = 0;
    bool gathers = false;
    bool releases = false;
  };
  struct Gather {
    std::size_t unit = 0;
    std::optional<plan::EventId> arrived;
  };

  void plan_uses();
  void use_block(std::size_t block, bool stays, std::vector<std::size_t>& left, std::vector<bool>& held);
  void issue_gathers();
  void gather(std::size_t index);
  void begin_use();
  void end_use();

  DataParallelContext context_;
  plan::StreamId gather_stream_;
  plan::StreamId reduce_stream_;
  std::vector<Unit> units_;
  std::vector<std::size_t> unit_of_block_;
  std::vector<Use> uses_;
  std::vector<Gather> gathers_;
  std::size_t next_use_ = 0;
  std::size_t needed_ = 0;  // gathers that uses up to the present one ask for
  std::size_t issued_ = 0;
  std::optional<plan::EventId> last_used_;  // compute is through with all units released so far
  ScatterQueue scatters_;
  std::vector<bool> last_backward_;  // by action: no later one gives gradients of its chunk
  bool reducing_ = true;             // in this action
};

}  // namespace stepcast::parallel
