#include "sim/plan/memory_timeline.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/base/check.hpp"
#include "sim/plan/caching_allocator.hpp"

namespace stepcast::plan {
namespace {

std::size_t slot(Category category) { return static_cast<std::size_t>(category); }

Bytes counted(const Buffer& buffer) {
  return buffer.memory == Memory::kDevice ? CachingAllocator::rounded(buffer.size) : buffer.size;
}

// What is live once `last` has run.
std::vector<LiveBuffers> live_after(const Program& program, std::size_t last, const MemoryOptions& options) {
  std::vector<bool> live(program.buffers.size(), false);
  for (std::size_t i = 0; i <= last; ++i) {
    const Body& body = program.instructions[i].body;
    if (const auto* alloc = std::get_if<Alloc>(&body)) live[alloc->buffer.index()] = true;
    if (const auto* release = std::get_if<Free>(&body)) live[release->buffer.index()] = false;
  }
  std::map<std::tuple<LabelId, Category, Bytes>, std::size_t> counts;
  for (std::size_t i = 0; i < live.size(); ++i) {
    const Buffer& buffer = program.buffers[i];
    if (live[i] && buffer.memory == options.memory) ++counts[{buffer.label, buffer.category, counted(buffer)}];
  }
  std::vector<LiveBuffers> result;
  for (const auto& [key, count] : counts) {
    result.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), count});
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const LiveBuffers& a, const LiveBuffers& b) { return a.total() > b.total(); });
  if (result.size() > options.largest) result.resize(options.largest);
  return result;
}

class Walk {
 public:
  Walk(const Program& program, const MemoryOptions& options)
      : program_{program},
        options_{options},
        allocator_{options.capacity ? CachingAllocator{*options.capacity} : CachingAllocator{}},
        blocks_(options.memory == Memory::kDevice ? program.buffers.size() : 0) {}

  MemoryTimeline run() {
    for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
      const Instruction& instruction = program_.instructions[i];
      if (const auto* alloc = std::get_if<Alloc>(&instruction.body)) {
        on_alloc(i, instruction, alloc->buffer);
      } else if (const auto* release = std::get_if<Free>(&instruction.body)) {
        on_free(i, release->buffer);
      }
    }
    result_.at_end = live_;
    result_.reserved_peak = options_.expandable_segments ? expanded() : allocator_.reserved_peak();
    if (result_.instruction) result_.largest = live_after(program_, *result_.instruction, options_);
    return std::move(result_);
  }

 private:
  void on_alloc(std::size_t index, const Instruction& instruction, BufferId id) {
    const Buffer& buffer = program_.buffers[id.index()];
    if (buffer.memory != options_.memory) return;
    if (options_.memory == Memory::kDevice && options_.expandable_segments) {
      homes_[id.index()] = instruction.stream;
      StreamUse& use = streams_[instruction.stream];
      use.live += counted(buffer);
      use.peak = std::max(use.peak, use.live);
    } else if (options_.memory == Memory::kDevice) {
      blocks_[id.index()] = allocator_.allocate(buffer.size, instruction.stream);
      if (!blocks_[id.index()] && !result_.out_of_memory) result_.out_of_memory = index;
    }
    const std::size_t category = slot(buffer.category);
    live_ += counted(buffer);
    by_category_[category] += counted(buffer);
    result_.category_peak[category] = std::max(result_.category_peak[category], by_category_[category]);
    if (live_ > result_.peak || !result_.instruction) {
      result_.peak = live_;
      result_.at_peak = by_category_;
      result_.instruction = index;
      result_.label = instruction.label;
    }
    sample(index);
  }

  void on_free(std::size_t index, BufferId id) {
    const Buffer& buffer = program_.buffers[id.index()];
    if (buffer.memory != options_.memory) return;
    if (const auto home = homes_.find(id.index()); home != homes_.end()) {
      streams_[home->second].live -= counted(buffer);
      homes_.erase(home);
    }
    if (options_.memory == Memory::kDevice && blocks_[id.index()]) {
      allocator_.free(*blocks_[id.index()]);
      blocks_[id.index()].reset();
    }
    live_ -= counted(buffer);
    by_category_[slot(buffer.category)] -= counted(buffer);
    sample(index);
  }

  [[nodiscard]] Bytes expanded() const {
    Bytes sum{0};
    for (const auto& [stream, use] : streams_) {
      const std::int64_t pages = (use.peak.count() + CachingAllocator::kOwnRounding - 1) / CachingAllocator::kOwnRounding;
      sum += Bytes{pages * CachingAllocator::kOwnRounding};
    }
    return sum;
  }

  void sample(std::size_t index) {
    if (options_.samples) result_.samples.push_back({index, live_, by_category_});
  }

  const Program& program_;
  const MemoryOptions& options_;
  CachingAllocator allocator_;
  struct StreamUse {
    Bytes live;
    Bytes peak;
  };
  std::vector<std::optional<BlockId>> blocks_;  // by buffer
  std::map<StreamId, StreamUse> streams_;       // with expandable segments
  std::map<std::size_t, StreamId> homes_;       // of live buffers, by buffer
  MemoryTimeline result_;
  Bytes live_;
  BytesByCategory by_category_{};
};

}  // namespace

MemoryTimeline memory_timeline(const Program& program, const MemoryOptions& options) {
  return Walk{program, options}.run();
}

}  // namespace stepcast::plan
