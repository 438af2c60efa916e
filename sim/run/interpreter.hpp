// sim/run/interpreter.hpp — the state of a running step: where each stream of each simulated worker
// stands, who has arrived at which collective, which messages are posted.
//
// A stream advances eagerly: its clock may run ahead of the engine's, since what it does until it
// meets another worker depends on nobody. Only meetings are events: a collective whose last member
// has arrived, a message that may move (channel.hpp), the end of their traffic. Kernels that start while a
// collective of their worker is there run at a rate that changes with it: their end is an event too.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "models/collective/cost.hpp"
#include "models/network/link_network.hpp"
#include "sim/engine/engine.hpp"
#include "sim/run/breakdown.hpp"
#include "sim/run/calls.hpp"
#include "sim/run/channel.hpp"
#include "sim/run/compiled_program.hpp"
#include "sim/run/groups.hpp"
#include "sim/run/link_paths.hpp"
#include "sim/run/recorder.hpp"
#include "sim/run/routes.hpp"
#include "sim/run/slow_chains.hpp"
#include "sim/run/transport_use.hpp"

namespace stepcast::run {

class Interpreter final : public engine::EventTarget, public network::FlowListener {
 public:
  // `folded`: simulate one worker a stage on these links; null: every worker, every slot.
  Interpreter(const plan::Plan& plan, const Machine& machine, const CompiledPlan& compiled, const GroupTable& groups,
              CallTable& calls, LinkPaths& paths, const FoldedLinks* folded, Recorder& recorder);

  void run(std::uint64_t max_events);

  struct WorkerEnd {
    RankId rank;
    TimePoint time;
    PartTimes parts{};  // sum to `time`
  };
  // After run(): the worker that ends last, the lowest rank on ties.
  [[nodiscard]] WorkerEnd critical() const;
  [[nodiscard]] std::size_t worker_count() const { return workers_.size(); }
  [[nodiscard]] const engine::Engine& engine() const { return engine_; }
  // Bytes carried, by link of the network in use; and the slot (LinkSlots) that link i stands for.
  [[nodiscard]] std::vector<double> carried_by_link() const { return network_.carried_by_link(); }
  // Requires: link < link_count().
  [[nodiscard]] std::uint32_t slot_of_link(std::size_t link) const;
  // Of the fabric; links after them stand for progress threads.
  [[nodiscard]] std::size_t link_count() const { return fabric_links_; }

  void on_event(engine::Engine& engine, std::uint32_t kind, std::uint64_t arg) override;
  void on_flow_done(std::uint64_t tag) override;
  [[nodiscard]] std::string_view target_name() const override { return "interpreter"; }

 private:
  // What a stream last waited for, so that whoever waits for the stream can be told why.
  struct Cause {
    std::optional<Part> part;
    TimePoint moving_since;  // traffic started; before that the other side was not ready
  };
  struct StreamState {
    const CompiledStream* program = nullptr;
    std::uint32_t worker = 0;
    std::uint32_t position = 0;
    TimePoint free;
    std::optional<std::uint32_t> waits_for;  // event, while blocked on a Wait
    bool waits_for_issue = false;            // the host has not got there: it waits itself
    Cause cause;
  };
  struct EventState {
    std::optional<TimePoint> time;
    Cause cause;
  };
  // A collective in which a worker is, from its arrival to the end of the traffic.
  struct Guest {
    std::uint32_t stream = 0;
    TimePoint from;
    gpu::Taken taken;
  };
  // Kernels under way beside guests.
  struct Chain {
    std::uint32_t stream = 0;
    TimePoint begin;
    TimePoint settled;   // `left` is of this time
    double left = 1.0;   // [1] of the work
    engine::EventId end;
  };
  struct Worker {
    RankId rank;
    std::uint32_t program = 0;
    std::uint32_t first_stream = 0;
    std::uint32_t stream_count = 0;
    std::uint32_t first_event = 0;
    PartTimes parts{};
    std::vector<Guest> guests{};
    std::optional<Chain> chain{};
    std::vector<TimePoint> epochs{TimePoint{}};  // when the host began to issue each
  };
  struct Meeting {  // a collective in progress
    std::uint32_t communicator = 0;
    std::uint32_t ordinal = 0;
    std::uint32_t site = 0;
    TimePoint last_arrival;
    std::vector<std::uint32_t> streams;
  };
  struct Connection {  // from one worker to another
    Channel channel;
    MessageCost cost;
    network::RouteId route;
    Bytes moving;  // what moves or is about to
  };
  void add_worker(RankId rank);
  void make_ready(std::uint32_t stream);
  void advance_ready();
  bool step(std::uint32_t stream);
  bool run_kernels(StreamState& stream, std::uint32_t index, const CompiledStep& step);
  void finish_kernels(StreamState& stream, const CompiledStep& step, Duration busy);
  bool pass_wait(StreamState& stream, const CompiledStep& step);
  bool record_event(StreamState& stream, std::uint32_t index, const CompiledStep& step);
  void arrive(std::uint32_t stream, const CompiledStep& step);
  void post(std::uint32_t stream, const CompiledStep& step, bool is_send);
  [[nodiscard]] bool is_issued(StreamState& stream, const CompiledStep& step);
  void begin_epoch(StreamState& stream, const CompiledStep& step, TimePoint event);
  [[nodiscard]] TimePoint issue_time(const StreamState& stream, const CompiledStep& step) const;
  TimePoint host_bound(StreamState& stream, const CompiledStep& step);
  void resume(std::uint32_t stream, TimePoint end, TimePoint shown_from, const Cause& cause);
  void wait_on(StreamState& stream, TimePoint until, const Cause& cause);
  void charge(StreamState& stream, Part part, Duration time);

  void welcome(std::uint32_t stream, TimePoint from, const gpu::Taken& taken);
  void dismiss(std::uint32_t stream);
  [[nodiscard]] Duration chain_time(const Worker& worker, TimePoint at, TimePoint& until);
  TimePoint play_chain(Worker& worker, TimePoint until);
  void await_chain(std::uint32_t worker);
  void end_chain(std::uint32_t worker);

  void begin_collective(std::uint32_t meeting);
  void end_collective(std::uint32_t meeting);
  void begin_message(std::uint32_t connection);
  void end_message(std::uint32_t connection);
  void follow(std::uint32_t connection);
  void begin_host_work(std::uint32_t stream);
  network::RouteId route_of_meeting(const Meeting& meeting);
  std::uint32_t connection_between(RankId from, RankId to);

  const plan::Plan& plan_;
  const Machine& machine_;
  const CompiledPlan& compiled_;
  const GroupTable& groups_;
  CallTable& calls_;
  LinkPaths& paths_;
  const FoldedLinks* folded_;
  Recorder& recorder_;
  engine::Engine engine_;
  network::LinkNetwork network_;
  Routes routes_;
  SlowChains slow_;
  std::vector<Worker> workers_;
  std::vector<StreamState> streams_;
  std::vector<EventState> events_;
  std::vector<std::uint32_t> ready_;                         // streams to advance that do not compute
  std::vector<std::uint32_t> ready_to_compute_;              // after those
  std::vector<std::uint32_t> expected_;                      // [communicator] simulated members
  std::vector<std::vector<std::uint32_t>> open_meetings_;    // [communicator]
  std::vector<Meeting> meetings_;
  std::vector<std::uint32_t> free_meetings_;
  std::vector<Connection> connections_;
  std::unordered_map<std::uint64_t, std::uint32_t> connection_index_;  // lookup only
  Channel::Outcome outcome_;                                 // of the message that something just happened to
  std::size_t fabric_links_ = 0;
};

}  // namespace stepcast::run
