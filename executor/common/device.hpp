// executor/common/device.hpp — what plays instructions for real: one worker's device. CPU and CUDA have one each.
//
// A device has the plan's streams. Instructions are issued in the program's order and run in the order of their streams; Record and
// Wait order streams; Alloc and Free take effect on their stream. play() is all that a step is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "sim/plan/plan.hpp"

namespace stepcast::executor {

// When an instruction ran, on the device's own clock [ns].
struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  friend bool operator==(const Interval&, const Interval&) = default;
};

class Device {
 public:
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  // Forgets the events and times of the step before.
  virtual void begin_step() = 0;
  // What is issued from here on starts when finish() is called, so that no gap of issuing is timed. A device that need not queue may ignore it.
  virtual void hold() {}
  // Queues instruction `index` of the program on its stream.
  virtual void issue(std::size_t index) = 0;
  // Waits until all that was issued has ended. Throws what an instruction failed with.
  virtual void finish() = 0;
  // By instruction, of the step that finish() ended.
  [[nodiscard]] virtual std::span<const Interval> intervals() const = 0;
};

// One step: all instructions, and their end.
void play(const plan::Program& program, Device& device);

// Whether an instruction takes time: what records keep, and traces show.
bool takes_time(const plan::Body& body);

}  // namespace stepcast::executor
