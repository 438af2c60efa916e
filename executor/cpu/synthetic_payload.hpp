// executor/cpu/synthetic_payload.hpp — the work of a plan on random numbers: what each operator costs, without a model.
//
// Work     gemm and attention by shape; the optimizer as Adam on written / 12 bytes elements; everything else reads and writes its
//          bytes once, with an exponential for each element written where it is a softmax, a loss, or takes 4 operations an element
//          and more (an activation); NVMe through a temporary file.
// Data     inputs are random; every operator takes the next ones of a block that is larger than the caches, as layers of a model do.
// Ignores  formats other than fp32 in arithmetic (the plan is refused before: cpu_device.hpp); which rows an embedding takes.
#pragma once

#include <cstdio>
#include <memory>
#include <vector>

#include "executor/common/payload.hpp"
#include "sim/plan/plan.hpp"

namespace stepcast::executor {

class SyntheticPayload : public Payload {
 public:
  // `threads`: of Adam. `least`: elements of a block. The usual one is beyond the last cache of most machines.
  SyntheticPayload(const plan::Program& program, std::uint64_t seed, std::size_t least = std::size_t{16} << 20U, int threads = 1);
  ~SyntheticPayload() override;

  void begin_step() override {}
  void compute(std::size_t i) override;
  std::span<std::byte> collective(std::size_t i) override;
  std::span<std::byte> landing(std::size_t i) override;
  void collected(std::size_t) override {}
  [[nodiscard]] Reduction reduction(std::size_t) const override { return Reduction::kSum; }
  std::span<const std::byte> outgoing(std::size_t i) override;
  std::span<std::byte> incoming(std::size_t i) override;
  void received(std::size_t) override {}
  void copy(std::size_t i) override;
  void host_compute(std::size_t i) override;
  void load_batch(std::size_t i) override;
  [[nodiscard]] std::vector<std::pair<std::string, double>> values() const override { return {}; }

 private:
  struct Lane;  // the data of a stream: streams share nothing
  Lane& lane(std::size_t i);
  const plan::Program& program_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace stepcast::executor
