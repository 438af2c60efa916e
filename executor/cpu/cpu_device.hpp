// executor/cpu/cpu_device.hpp — a worker on CPU cores: one thread a stream, memory of the host, messages by a Messenger.
// Collectives are rings (collectives.hpp). Arithmetic is fp32: a plan in another format is refused (common/cpu_limits.hpp).
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "executor/common/device.hpp"
#include "executor/cpu/memory_pool.hpp"
#include "executor/cpu/messenger.hpp"
#include "executor/common/payload.hpp"
#include "executor/cpu/stream.hpp"

namespace stepcast::executor {

class CpuDevice : public Device {
 public:
  // Everything named here outlives the device. Requires: a plan that plan::check() accepts.
  CpuDevice(const plan::Plan& plan, RankId rank, Messenger& messenger, Payload& payload, Bytes memory_limit);
  ~CpuDevice() override;

  void begin_step() override;
  void issue(std::size_t index) override;
  void finish() override;
  [[nodiscard]] std::span<const Interval> intervals() const override { return intervals_; }

  [[nodiscard]] Bytes peak_memory() const { return pool_.peak(); }
  // What each stream is at, for somebody who waits too long: "dp: collective 'gradient.bucket'". Thread-safe.
  [[nodiscard]] std::vector<std::string> standing() const;
  // From any thread: everything that waits gives up.
  void stop();

 private:
  struct GroupView {  // this worker in a group
    std::vector<RankId> members;
    std::size_t slot = 0;
  };
  void run(std::size_t index);
  void run_collective(std::size_t index, const plan::Collective& collective);
  void count_conversations();

  const plan::Plan& plan_;
  RankId rank_;
  const plan::Program& program_;
  Messenger& messenger_;
  Payload& payload_;
  MemoryPool pool_;
  std::vector<GroupView> groups_;
  std::vector<std::uint32_t> sequence_;       // by instruction: its number in its conversation
  std::vector<std::byte*> blocks_;            // by buffer
  std::vector<Event> events_;
  std::vector<Interval> intervals_;
  std::vector<std::vector<std::byte>> scratch_;  // by stream
  bool in_step_ = false;
  std::vector<std::size_t> at_;               // by stream: instruction that runs, or none
  mutable std::mutex at_mutex_;
  std::vector<std::unique_ptr<Stream>> streams_;  // last: their threads end first
};

}  // namespace stepcast::executor
