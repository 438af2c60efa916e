// executor/cpu/messenger.hpp — bytes between workers: over MPI (mpi_messenger.hpp), or between threads of one process
// (local_messenger.hpp, for tests). Collectives and messages of the plan are written on top of it, so that both run the same code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>

#include "sim/base/ids.hpp"

namespace stepcast::executor {

// Which conversation a transfer belongs to: two workers agree on it from the plan alone. Transfers of one channel between two
// workers match in order.
struct Channel {
  std::uint32_t space = 0;     // 0: messages; g + 1: collectives of group g
  std::uint32_t sequence = 0;  // the n-th between the two, or of the group
  friend auto operator<=>(const Channel&, const Channel&) = default;
};

// A transfer on its way. wait() throws Stopped after Messenger::stop(), SystemError when the network failed.
class Transfer {
 public:
  Transfer() = default;
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  virtual ~Transfer() = default;
  virtual void wait() = 0;
};

// Somebody else failed; what waits gives up.
class Stopped : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "another worker failed"; }
};

class Messenger {
 public:
  Messenger() = default;
  Messenger(const Messenger&) = delete;
  Messenger& operator=(const Messenger&) = delete;
  virtual ~Messenger() = default;

  // Ends when the receiver has reached its receive and the bytes are out, as NCCL's sends do. The bytes stay in place until then.
  virtual std::unique_ptr<Transfer> send(RankId to, Channel channel, std::span<const std::byte> bytes) = 0;
  virtual std::unique_ptr<Transfer> receive(RankId from, Channel channel, std::span<std::byte> bytes) = 0;
  // Waits until all workers are here.
  virtual void barrier() = 0;
  // From any thread: every wait of this worker gives up.
  virtual void stop() = 0;
};

}  // namespace stepcast::executor
