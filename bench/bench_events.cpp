// Events per second at constant population (the hold model): every event that fires schedules one
// more. Whole engine, then the queues alone, against std::priority_queue of std::function in the same run.
//
//   random  delays uniform in [1, 2e9] ps: almost no ties
//   ties    one delay in three is 0, the others multiples of 1 us up to 2 ms: many workers in step
#include <cmath>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "bench/harness.hpp"
#include "bench/heap_queue.hpp"
#include "sim/base/random.hpp"
#include "sim/engine/engine.hpp"

using namespace stepcast;
using namespace stepcast::bench;

namespace {

constexpr std::uint64_t kEvents = 1'000'000;  // a run

enum class Delays { kRandom, kTies };

class Draw {
 public:
  explicit Draw(Delays delays) : delays_{delays} {}
  std::int64_t operator()() {
    const std::uint64_t bits = rng_.next();
    if (delays_ == Delays::kRandom) return static_cast<std::int64_t>(1 + (bits >> 32) * 2'000'000'000 / (1ULL << 32));
    if (bits % 3 == 0) return 0;
    return static_cast<std::int64_t>(1 + (bits >> 32) * 2'000 / (1ULL << 32)) * 1'000'000;
  }

 private:
  Delays delays_;
  Rng rng_{1, "bench_events"};
};

class EngineHold : public engine::EventTarget {
 public:
  EngineHold(std::uint64_t pending, Delays delays) : draw_{delays} {
    for (std::uint64_t i = 0; i < pending; ++i) schedule(i);
  }
  std::uint64_t run() {
    engine_.run(TimePoint::max(), kEvents);
    return kEvents;
  }

 private:
  void on_event(engine::Engine&, std::uint32_t, std::uint64_t arg) override { schedule(arg); }
  void schedule(std::uint64_t arg) {
    engine_.after(Duration::picoseconds(draw_()), engine::Phase::kCompletion, *this, 0, arg);
  }
  engine::Engine engine_;
  Draw draw_;
};

// What one writes first: a heap of closures. Moves closures out of the heap, as a careful author would.
class FunctionHold {
 public:
  FunctionHold(std::uint64_t pending, Delays delays) : draw_{delays} {
    for (std::uint64_t i = 0; i < pending; ++i) schedule(i);
  }
  std::uint64_t run() {
    for (std::uint64_t i = 0; i < kEvents; ++i) {
      Item item = std::move(const_cast<Item&>(queue_.top()));
      queue_.pop();
      now_ps_ = item.time_ps;
      item.action();
    }
    return kEvents;
  }

 private:
  struct Item {
    std::int64_t time_ps;
    std::uint8_t phase;
    std::uint64_t insertion;
    std::function<void()> action;
  };
  struct Later {
    bool operator()(const Item& a, const Item& b) const {
      return std::tie(a.time_ps, a.phase, a.insertion) > std::tie(b.time_ps, b.phase, b.insertion);
    }
  };
  void schedule(std::uint64_t arg) {
    queue_.push({now_ps_ + draw_(), 20, insertion_++, [this, arg] { schedule(arg); }});
  }
  std::priority_queue<Item, std::vector<Item>, Later> queue_;
  std::int64_t now_ps_ = 0;
  std::uint64_t insertion_ = 0;
  Draw draw_;
};

template <class Queue>
class QueueHold {
 public:
  QueueHold(std::uint64_t pending, Delays delays) : draw_{delays} {
    for (std::uint64_t i = 0; i < pending; ++i) queue_.push({draw_(), static_cast<std::uint32_t>(i), 20});
  }
  std::uint64_t run() {
    for (std::uint64_t i = 0; i < kEvents; ++i) {
      engine::QueueNode node = queue_.pop();
      node.time_ps += draw_();
      queue_.push(node);
    }
    return kEvents;
  }

 private:
  Queue queue_;
  Draw draw_;
};

template <class Hold>
Sample hold(const Options& options, std::uint64_t pending, Delays delays) {
  const auto model = std::make_unique<Hold>(pending, delays);
  return measure(options, [&] { return model->run(); });
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  print_header();
  for (const Delays delays : {Delays::kRandom, Delays::kTies}) {
    for (const std::uint64_t pending : {1'000ULL, 100'000ULL, 1'000'000ULL}) {
      const std::string name = fmt::format("{}_{}", delays == Delays::kRandom ? "random" : "ties", pending);
      const Sample baseline = hold<FunctionHold>(options, pending, delays);
      const auto row = [&](const char* what, Sample sample) {
        print_row(options, what, name, "events/s", sample, sample.median / baseline.median);
      };
      row("priority_queue_function", baseline);
      row("engine", hold<EngineHold>(options, pending, delays));
      row("queue_radix", hold<QueueHold<engine::RadixQueue>>(options, pending, delays));
      row("queue_heap2", hold<QueueHold<HeapQueue<2>>>(options, pending, delays));
      row("queue_heap4", hold<QueueHold<HeapQueue<4>>>(options, pending, delays));
      row("queue_heap8", hold<QueueHold<HeapQueue<8>>>(options, pending, delays));
    }
  }
}
