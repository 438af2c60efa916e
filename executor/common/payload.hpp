// executor/common/payload.hpp — what instructions compute on and move. The device knows streams and messages; a payload knows data: random
// numbers (synthetic_payload.hpp), or a model that learns.
//
// Calls come from the thread of the instruction's stream, in the plan's order. `i` is the instruction's index in the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/file.hpp"

namespace stepcast::executor {

// What this device cannot compute: fp8 products on a GPU without them. Thrown before anything of the instruction is queued.
class NotSupported : public SystemError {
 public:
  using SystemError::SystemError;
};

enum class Reduction : std::uint8_t { kSum, kMost };

class Payload {
 public:
  Payload() = default;
  Payload(const Payload&) = delete;
  Payload& operator=(const Payload&) = delete;
  virtual ~Payload() = default;

  virtual void begin_step() = 0;
  virtual void compute(std::size_t i) = 0;

  // The buffer of a collective: `bytes` long, as nccl-tests counts it, worked on in place.
  virtual std::span<std::byte> collective(std::size_t i) = 0;
  // Where an all-to-all or send-receive puts what comes in: as long.
  virtual std::span<std::byte> landing(std::size_t i) = 0;
  virtual void collected(std::size_t i) = 0;
  // Of a Free: what lay in the buffer is gone.
  virtual void freed(std::size_t) {}
  [[nodiscard]] virtual Reduction reduction(std::size_t i) const = 0;

  virtual std::span<const std::byte> outgoing(std::size_t i) = 0;  // of a send
  virtual std::span<std::byte> incoming(std::size_t i) = 0;        // of a receive
  virtual void received(std::size_t i) = 0;

  virtual void copy(std::size_t i) = 0;
  virtual void host_compute(std::size_t i) = 0;
  virtual void load_batch(std::size_t i) = 0;

  // What the step that ended gave: "loss".
  [[nodiscard]] virtual std::vector<std::pair<std::string, double>> values() const = 0;
};

}  // namespace stepcast::executor
