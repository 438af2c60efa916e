#include "sim/run/interpreter.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/run/interpreter_events.hpp"

namespace stepcast::run {
namespace {

// A flow's tag says what ends with it.
constexpr std::uint64_t kMessageTag = std::uint64_t{1} << 32;
constexpr std::uint64_t kHostWorkTag = std::uint64_t{1} << 33;

constexpr std::uint64_t pair_key(std::uint32_t a, std::uint32_t b) { return std::uint64_t{a} << 32 | b; }

// Slots by link of the solver.
std::vector<std::uint32_t> link_slots(const LinkPaths& paths, const FoldedLinks* folded) {
  if (folded != nullptr) return folded->bundle;
  std::vector<std::uint32_t> slots(paths.slots().size());
  std::iota(slots.begin(), slots.end(), 0U);
  return slots;
}

std::vector<double> link_capacities(const LinkPaths& paths, const FoldedLinks* folded) {
  std::vector<double> capacities;
  for (const std::uint32_t slot : link_slots(paths, folded)) capacities.push_back(paths.capacity(slot));
  return capacities;
}

}  // namespace

Interpreter::Interpreter(const plan::Plan& plan, const Machine& machine, const CompiledPlan& compiled,
                         const GroupTable& groups, CallTable& calls, LinkPaths& paths, const FoldedLinks* folded, Recorder& recorder)
    : plan_{plan},
      machine_{machine},
      compiled_{compiled},
      groups_{groups},
      calls_{calls},
      paths_{paths},
      folded_{folded},
      recorder_{recorder},
      network_{engine_, *this, link_capacities(paths, folded), machine.transports.network.congestion},
      routes_{plan, machine, groups, paths, folded, engine_, network_},
      slow_{plan, machine, compiled},
      expected_(groups.size(), 0),
      open_meetings_(groups.size()),
      fabric_links_{folded != nullptr ? folded->bundle.size() : paths.slots().size()} {
  if (machine.fabric.networks.size() > 1) set_congestion(network_, machine.fabric, paths.slots(), link_slots(paths, folded), machine.transports);
  if (folded_ != nullptr) {
    for (std::int32_t stage = 0; stage < plan_.degrees[plan::Axis::kPipeline]; ++stage) {
      plan::PerAxis coordinates{0};
      coordinates[plan::Axis::kPipeline] = stage;
      add_worker(plan_.rank(coordinates));
    }
  } else {
    for (std::int32_t rank = 0; rank < plan_.world_size(); ++rank) add_worker(RankId{static_cast<std::uint32_t>(rank)});
  }
  std::vector<bool> simulated(static_cast<std::size_t>(plan_.world_size()), false);
  for (const Worker& worker : workers_) simulated[worker.rank.index()] = true;
  for (std::uint32_t c = 0; c < groups_.size(); ++c) {
    for (const RankId member : groups_.communicator(c).members) expected_[c] += simulated[member.index()] ? 1 : 0;
  }
}

void Interpreter::add_worker(RankId rank) {
  const plan::PerAxis coordinates = plan_.coordinates(rank);
  const std::size_t program = plan_.program_of_stage[static_cast<std::size_t>(coordinates[plan::Axis::kPipeline])].index();
  const CompiledProgram& compiled = compiled_.on(program, machine_.gpu_kind(rank.value()));
  const auto id = static_cast<std::uint32_t>(workers_.size());
  workers_.push_back({.rank = rank,
                      .program = static_cast<std::uint32_t>(program),
                      .first_stream = static_cast<std::uint32_t>(streams_.size()),
                      .stream_count = static_cast<std::uint32_t>(compiled.streams.size()),
                      .first_event = static_cast<std::uint32_t>(events_.size())});
  const auto compute_streams = std::count_if(compiled.streams.begin(), compiled.streams.end(),
                                             [](const CompiledStream& s) { return s.is_compute; });
  SIM_CHECK(compute_streams == 1, compute_streams);  // its time is the breakdown
  for (const CompiledStream& stream : compiled.streams) streams_.push_back({.program = &stream, .worker = id});
  events_.resize(events_.size() + compiled.event_count);
}

void Interpreter::run(std::uint64_t max_events) {
  const std::vector<topology::LinkChange>& changes = machine_.paths.changes;
  for (std::uint32_t c = 0; c < changes.size(); ++c) {
    if (changes[c].at > Duration{}) engine_.at_daemon(TimePoint::at(changes[c].at), engine::Phase::kFault, *this, kLinkChange, c);
  }
  for (std::uint32_t s = static_cast<std::uint32_t>(streams_.size()); s-- > 0;) make_ready(s);
  advance_ready();
  const engine::StopReason reason = engine_.run(TimePoint::max(), max_events);
  SIM_CHECK(reason == engine::StopReason::kDrained, engine_.describe_pending());
  for (const StreamState& stream : streams_) {
    SIM_CHECK(stream.position == stream.program->steps.size(), workers_[stream.worker].rank.value(), stream.position);
  }
}

void Interpreter::make_ready(std::uint32_t stream) {
  (streams_[stream].program->is_compute ? ready_to_compute_ : ready_).push_back(stream);
}

// Communication first: the collectives that begin now are beside the kernels that follow.
void Interpreter::advance_ready() {
  while (!ready_.empty() || !ready_to_compute_.empty()) {
    std::vector<std::uint32_t>& next = ready_.empty() ? ready_to_compute_ : ready_;
    const std::uint32_t stream = next.back();
    next.pop_back();
    while (step(stream)) {
    }
  }
}

// One step; false when the stream is done or has to wait for somebody.
bool Interpreter::step(std::uint32_t index) {
  StreamState& stream = streams_[index];
  if (stream.position == stream.program->steps.size()) return false;
  const CompiledStep& step = stream.program->steps[stream.position];
  if (!is_issued(stream, step)) return false;
  switch (step.kind) {
    case StepKind::kKernels:
      if (!run_kernels(stream, index, step)) return false;
      break;
    case StepKind::kRecord: return record_event(stream, index, step);
    case StepKind::kWait:
      if (!pass_wait(stream, step)) return false;
      break;
    case StepKind::kCollective: arrive(index, step); return false;
    case StepKind::kSend: post(index, step, true); return false;
    case StepKind::kRecv: post(index, step, false); return false;
    case StepKind::kHostWork: engine_.at(host_bound(stream, step) + kCopyLatency, engine::Phase::kDispatch, *this, kBeginHostWork, index); return false;
  }
  ++stream.position;
  return true;
}

// At once where no collective is there: none of this worker's can begin before the chain ends, since its other streams
// wait for what this one records. Else false: the end is an event.
bool Interpreter::run_kernels(StreamState& stream, std::uint32_t index, const CompiledStep& step) {
  Worker& worker = workers_[stream.worker];
  if (worker.guests.empty() || step.busy == Duration{}) {
    finish_kernels(stream, step, step.busy);
    return true;
  }
  SIM_CHECK(!worker.chain, worker.rank.value());  // one compute stream
  worker.chain = Chain{.stream = index, .begin = stream.free, .settled = stream.free};
  await_chain(stream.worker);
  return false;
}

void Interpreter::finish_kernels(StreamState& stream, const CompiledStep& step, Duration busy) {
  const Worker& worker = workers_[stream.worker];
  if (!recorder_.empty() && recorder_.wants(worker.rank)) {
    recorder_.kernels(worker.rank, *stream.program, step, worker.epochs[step.epoch], stream.free, busy);
  }
  const TimePoint end = std::max(stream.free + busy, issue_time(stream, step));
  charge(stream, step.part == KernelPart::kOptimizer ? Part::kOptimizer : Part::kCompute, busy);
  charge(stream, Part::kHost, end - stream.free - busy);
  stream.free = end;
  stream.cause = {};
}

bool Interpreter::pass_wait(StreamState& stream, const CompiledStep& step) {
  const EventState& event = events_[workers_[stream.worker].first_event + step.operand];
  if (!event.time) {
    stream.waits_for = step.operand;
    return false;
  }
  if (stream.program->is_issue) begin_epoch(stream, step, *event.time);
  wait_on(stream, *event.time, event.cause);
  return true;
}

// Whether the host's waits before the step are over; if not, the stream is woken when they are.
bool Interpreter::is_issued(StreamState& stream, const CompiledStep& step) {
  stream.waits_for_issue = step.epoch >= workers_[stream.worker].epochs.size();
  return !stream.waits_for_issue;
}

void Interpreter::begin_epoch(StreamState& stream, const CompiledStep& step, TimePoint event) {
  Worker& worker = workers_[stream.worker];
  worker.epochs.push_back(std::max(event, issue_time(stream, step)));
  for (std::uint32_t s = worker.first_stream; s < worker.first_stream + worker.stream_count; ++s) {
    if (!streams_[s].waits_for_issue) continue;
    streams_[s].waits_for_issue = false;
    make_ready(s);
  }
}

TimePoint Interpreter::issue_time(const StreamState& stream, const CompiledStep& step) const {
  return workers_[stream.worker].epochs[step.epoch] + step.earliest;
}

// False if kernels have to let a stream that waited go first.
bool Interpreter::record_event(StreamState& stream, std::uint32_t index, const CompiledStep& step) {
  const Worker& worker = workers_[stream.worker];
  events_[worker.first_event + step.operand] = {stream.free, stream.cause};
  ++stream.position;
  for (std::uint32_t s = worker.first_stream; s < worker.first_stream + worker.stream_count; ++s) {
    if (streams_[s].waits_for != step.operand) continue;
    streams_[s].waits_for.reset();
    make_ready(s);
  }
  if (!stream.program->is_compute || ready_.empty()) return true;
  make_ready(index);
  return false;
}

// Not before the host has issued the step; the wait for the host is charged.
TimePoint Interpreter::host_bound(StreamState& stream, const CompiledStep& step) {
  const TimePoint issued = issue_time(stream, step);
  if (issued > stream.free) {
    charge(stream, Part::kHost, issued - stream.free);
    stream.free = issued;
  }
  return stream.free;
}

void Interpreter::wait_on(StreamState& stream, TimePoint until, const Cause& cause) {
  if (until <= stream.free) return;
  if (cause.part == Part::kPipeline) {
    const TimePoint moving = std::clamp(cause.moving_since, stream.free, until);
    charge(stream, Part::kBubble, moving - stream.free);
    charge(stream, Part::kPipeline, until - moving);
  } else {
    charge(stream, cause.part.value_or(Part::kHost), until - stream.free);
  }
  stream.free = until;
  stream.cause = cause;
}

void Interpreter::charge(StreamState& stream, Part part, Duration time) {
  if (stream.program->is_compute) workers_[stream.worker].parts[static_cast<std::size_t>(part)] += time;
}

void Interpreter::resume(std::uint32_t index, TimePoint end, TimePoint shown_from, const Cause& cause) {
  StreamState& stream = streams_[index];
  const Worker& worker = workers_[stream.worker];
  if (!recorder_.empty() && recorder_.wants(worker.rank)) {
    const CompiledStep& step = stream.program->steps[stream.position];
    recorder_.transfer(worker.rank, stream.program->instructions[step.first].index, std::max(shown_from, stream.free), end);
  }
  wait_on(stream, end, cause);
  stream.cause = cause;
  ++stream.position;
  make_ready(index);
}

// ---- collectives

void Interpreter::arrive(std::uint32_t index, const CompiledStep& step) {
  StreamState& stream = streams_[index];
  const TimePoint time = host_bound(stream, step);
  const CollectiveSite& site = compiled_.sites[step.site];
  const std::uint32_t communicator = groups_.index_of(site.group, workers_[stream.worker].rank);
  std::vector<std::uint32_t>& open = open_meetings_[communicator];
  auto found = std::find_if(open.begin(), open.end(),
                            [&](std::uint32_t m) { return meetings_[m].ordinal == step.operand; });
  if (found == open.end()) {
    if (free_meetings_.empty()) {
      free_meetings_.push_back(static_cast<std::uint32_t>(meetings_.size()));
      meetings_.emplace_back();
    }
    open.push_back(free_meetings_.back());
    free_meetings_.pop_back();
    found = std::prev(open.end());
    Meeting& fresh = meetings_[*found];
    fresh.communicator = communicator;
    fresh.ordinal = step.operand;
    fresh.site = step.site;
    fresh.last_arrival = time;
    fresh.streams.clear();
  }
  Meeting& meeting = meetings_[*found];
  SIM_CHECK(meeting.site == step.site, meeting.site, step.site);
  meeting.last_arrival = std::max(meeting.last_arrival, time);
  meeting.streams.push_back(index);
  if (const gpu::Taken& taken = calls_.call(communicator, step.site).taken; taken.sms > 0 && !stream.program->is_compute) welcome(index, time, taken);
  if (meeting.streams.size() < expected_[communicator]) return;
  const std::uint32_t id = *found;
  open.erase(found);
  const Call& call = calls_.call(communicator, step.site);
  const TimePoint moves = meeting.last_arrival + machine_.collective_wait + call.choice.latency;
  if (call.loads_network) {
    engine_.at(moves, engine::Phase::kDispatch, *this, kBeginCollective, id);
  } else {
    engine_.at(moves + call.alone, engine::Phase::kCompletion, *this, kEndCollective, id);
  }
}

void Interpreter::begin_collective(std::uint32_t id) {
  const Meeting& meeting = meetings_[id];
  const collective::Choice& choice = calls_.call(meeting.communicator, meeting.site).choice;
  const network::RouteId route = route_of_meeting(meeting);
  routes_.prepare(route, choice.wire_bytes);
  network_.start(route, choice.wire_bytes, choice.rate_cap, id);
}

network::RouteId Interpreter::route_of_meeting(const Meeting& meeting) {
  return routes_.of_collective(meeting.communicator, calls_.call(meeting.communicator, meeting.site).way);
}

void Interpreter::end_collective(std::uint32_t id) {
  const Meeting& meeting = meetings_[id];
  const Cause cause{.part = exposed(compiled_.sites[meeting.site].purpose), .moving_since = meeting.last_arrival};
  for (const std::uint32_t stream : meeting.streams) {
    dismiss(stream);
    resume(stream, engine_.now(), streams_[stream].free, cause);
  }
  free_meetings_.push_back(id);
}

// ---- messages

std::uint32_t Interpreter::connection_between(RankId from, RankId to) {
  const auto [it, is_new] = connection_index_.try_emplace(pair_key(from.value(), to.value()),
                                                          static_cast<std::uint32_t>(connections_.size()));
  if (is_new) {
    const MessageCost cost{machine_.fabric, machine_.router, machine_.transports, groups_.message_edges(from, to), scenario::TrafficAxis::kPipeline};
    connections_.push_back({.channel = Channel{cost.ahead()}, .cost = cost, .route = routes_.of_message(from, to), .moving = {}});
  }
  return it->second;
}

void Interpreter::post(std::uint32_t index, const CompiledStep& step, bool is_send) {
  StreamState& stream = streams_[index];
  const RankId rank = workers_[stream.worker].rank;
  const TimePoint time = host_bound(stream, step);
  const plan::Body& body =
      plan_.program(rank).instructions[stream.program->instructions[step.first].index].body;
  const std::int32_t stage = is_send ? std::get<plan::Send>(body).peer_stage : std::get<plan::Recv>(body).peer_stage;
  const RankId peer = plan_.peer(rank, stage);
  const std::uint32_t id = is_send ? connection_between(rank, peer) : connection_between(peer, rank);
  Channel& channel = connections_[id].channel;
  if (is_send) {
    channel.send(index, time, std::get<plan::Send>(body).bytes, outcome_);
  } else {
    channel.receive(index, time, outcome_);
  }
  follow(id);
}

void Interpreter::begin_message(std::uint32_t id) {
  const Connection& connection = connections_[id];
  routes_.prepare(connection.route, connection.moving.si());
  network_.start(connection.route, connection.moving.si(), connection.cost.rate_cap(), kMessageTag | id);
}

void Interpreter::end_message(std::uint32_t id) {
  connections_[id].channel.arrive(engine_.now(), outcome_);
  follow(id);
}

// What became possible on a channel.
void Interpreter::follow(std::uint32_t id) {
  Connection& connection = connections_[id];
  if (outcome_.moves) {
    connection.moving = outcome_.bytes;
    const Duration base = Duration::from_seconds(machine_.collectives.local.pairwise_simple_base_s);
    engine_.at(*outcome_.moves + base + connection.cost.latency(connection.moving), engine::Phase::kDispatch, *this, kBeginMessage, id);
  }
  for (const Channel::End& end : outcome_.over) {
    resume(end.stream, end.at, end.shown_from, {.part = Part::kPipeline, .moving_since = end.moving_since});
  }
}

// ---- work with the host's memory

void Interpreter::begin_host_work(std::uint32_t index) {
  const StreamState& stream = streams_[index];
  const RankId rank = workers_[stream.worker].rank;
  const CompiledStep& step = stream.program->steps[stream.position];
  const plan::Body& body = plan_.program(rank).instructions[stream.program->instructions[step.first].index].body;
  network_.start(routes_.of_host_work(rank, *host_work(body)), flow_bytes(body), std::nullopt, kHostWorkTag | index);
}

// ---- events

void Interpreter::on_event(engine::Engine&, std::uint32_t kind, std::uint64_t arg) {
  const auto id = static_cast<std::uint32_t>(arg);
  if (kind == kBeginCollective) {
    begin_collective(id);
  } else if (kind == kBeginMessage) {
    begin_message(id);
  } else if (kind == kBeginHostWork) {
    begin_host_work(id);
  } else if (kind == kLinkChange) {
    routes_.change_links(id);
  } else if (kind == kEndChain) {
    end_chain(id);
    advance_ready();
  } else {
    end_collective(id);
    advance_ready();
  }
}

void Interpreter::on_flow_done(std::uint64_t tag) {
  const auto id = static_cast<std::uint32_t>(tag);
  if ((tag & kHostWorkTag) != 0) {
    resume(id, engine_.now(), streams_[id].free, {.part = Part::kOffload, .moving_since = {}});
  } else if ((tag & kMessageTag) != 0) {
    routes_.leave(connections_[id].route);
    end_message(id);
  } else {
    if (network::follows_load(machine_.paths.policy)) routes_.leave(route_of_meeting(meetings_[id]));
    end_collective(id);
  }
  advance_ready();
}

// ---- results

std::uint32_t Interpreter::slot_of_link(std::size_t link) const {
  return folded_ != nullptr ? folded_->bundle[link] : static_cast<std::uint32_t>(link);
}

Interpreter::WorkerEnd Interpreter::critical() const {
  WorkerEnd last;
  for (const Worker& worker : workers_) {
    const StreamState* end = nullptr;
    const StreamState* compute = nullptr;
    for (std::uint32_t s = worker.first_stream; s < worker.first_stream + worker.stream_count; ++s) {
      if (end == nullptr || streams_[s].free > end->free) end = &streams_[s];
      if (streams_[s].program->is_compute) compute = &streams_[s];
    }
    if (end->free <= last.time && last.time != TimePoint{}) continue;
    last = {.rank = worker.rank, .time = end->free, .parts = worker.parts};
    // What the other streams still do after the last kernel is not hidden by anything.
    const Part part = end->cause.part.value_or(Part::kHost);
    last.parts[static_cast<std::size_t>(part)] += end->free - compute->free;
  }
  return last;
}

}  // namespace stepcast::run
