#include "executor/cpu/cpu_device.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <utility>

#include "executor/common/volumes.hpp"
#include "executor/cpu/collectives.hpp"
#include "executor/cpu/reduction.hpp"
#include "sim/base/diagnostic.hpp"

namespace stepcast::executor {
namespace {

constexpr std::size_t kIdle = std::numeric_limits<std::size_t>::max();

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

CpuDevice::CpuDevice(const plan::Plan& plan, RankId rank, Messenger& messenger, Payload& payload, Bytes memory_limit)
    : plan_{plan}, rank_{rank}, program_{plan.program(rank)}, messenger_{messenger}, payload_{payload}, pool_{memory_limit},
      blocks_(program_.buffers.size(), nullptr), events_(program_.event_count), intervals_(program_.instructions.size()),
      scratch_(program_.streams.size()), at_(program_.streams.size(), kIdle) {
  for (std::uint32_t g = 0; g < plan.groups.size(); ++g) {
    GroupView view;
    const plan::PerAxis here = plan.coordinates(rank);
    const auto& stages = plan.groups[g].stages;
    if (stages.empty() || std::find(stages.begin(), stages.end(), here[plan::Axis::kPipeline]) != stages.end()) {
      view.members = plan.members(plan::GroupId{g}, rank);
      view.slot = static_cast<std::size_t>(std::find(view.members.begin(), view.members.end(), rank) - view.members.begin());
    }
    groups_.push_back(std::move(view));
  }
  count_conversations();
  for (std::size_t s = 0; s < program_.streams.size(); ++s) streams_.push_back(std::make_unique<Stream>());
}

CpuDevice::~CpuDevice() {
  if (in_step_) stop();  // somebody gave up between issue and finish; streams may wait for what nobody sends
}

// The n-th collective of a group, the n-th message to a stage, the n-th from one: every worker of the conversation counts alike.
void CpuDevice::count_conversations() {
  std::map<std::uint32_t, std::uint32_t> of_group;
  std::map<std::int32_t, std::uint32_t> sent;
  std::map<std::int32_t, std::uint32_t> received;
  for (const plan::Instruction& i : program_.instructions) {
    std::uint32_t sequence = 0;
    if (const auto* c = std::get_if<plan::Collective>(&i.body)) sequence = of_group[c->group.value()]++;
    if (const auto* s = std::get_if<plan::Send>(&i.body)) sequence = sent[s->peer_stage]++;
    if (const auto* r = std::get_if<plan::Recv>(&i.body)) sequence = received[r->peer_stage]++;
    sequence_.push_back(sequence);
  }
}

void CpuDevice::begin_step() {
  in_step_ = true;
  for (Event& event : events_) event.reset();
  std::fill(intervals_.begin(), intervals_.end(), Interval{});
  // What the program did not free belongs to the step before.
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    if (blocks_[b] != nullptr) pool_.give(std::exchange(blocks_[b], nullptr), program_.buffers[b].size);
  }
  payload_.begin_step();
}

void CpuDevice::issue(std::size_t index) {
  streams_[program_.instructions[index].stream.index()]->push([this, index] { run(index); });
}

void CpuDevice::finish() {
  std::exception_ptr failure;
  for (const auto& stream : streams_) {
    try {
      stream->drain();
    } catch (const Stopped&) {
      if (!failure) failure = std::current_exception();
    } catch (...) {
      failure = std::current_exception();
    }
  }
  in_step_ = false;
  if (failure) std::rethrow_exception(failure);
}

void CpuDevice::stop() {
  for (Event& event : events_) event.stop();
  messenger_.stop();
}

std::vector<std::string> CpuDevice::standing() const {
  std::vector<std::string> text;
  const std::lock_guard lock{at_mutex_};
  for (std::size_t s = 0; s < at_.size(); ++s) {
    if (at_[s] == kIdle) continue;
    const plan::Instruction& i = program_.instructions[at_[s]];
    text.push_back(program_.streams[s].name + ": instruction " + std::to_string(at_[s]) + ", " + plan::opcode_of(i.body) + " '" +
                   program_.labels[i.label.index()] + "'");
  }
  return text;
}

void CpuDevice::run(std::size_t index) {
  const plan::Instruction& instruction = program_.instructions[index];
  const auto mark = [&](std::size_t where) {
    const std::lock_guard lock{at_mutex_};
    at_[instruction.stream.index()] = where;
  };
  mark(index);
  intervals_[index].begin = now_ns();
  try {
    struct Run {
      CpuDevice& d;
      std::size_t i;
      void operator()(const plan::Compute&) const { d.payload_.compute(i); }
      void operator()(const plan::Collective& c) const { d.run_collective(i, c); }
      void operator()(const plan::Send& s) const {
        d.messenger_.send(d.plan_.peer(d.rank_, s.peer_stage), {0, d.sequence_[i]}, d.payload_.outgoing(i))->wait();
      }
      void operator()(const plan::Recv& r) const {
        d.messenger_.receive(d.plan_.peer(d.rank_, r.peer_stage), {0, d.sequence_[i]}, d.payload_.incoming(i))->wait();
        d.payload_.received(i);
      }
      void operator()(const plan::Copy&) const { d.payload_.copy(i); }
      void operator()(const plan::HostCompute&) const { d.payload_.host_compute(i); }
      void operator()(const plan::LoadBatch&) const { d.payload_.load_batch(i); }
      void operator()(const plan::Alloc& a) const { d.blocks_[a.buffer.index()] = d.pool_.take(d.program_.buffers[a.buffer.index()].size); }
      void operator()(const plan::Free& f) const {
        d.payload_.freed(i);
        d.pool_.give(std::exchange(d.blocks_[f.buffer.index()], nullptr), d.program_.buffers[f.buffer.index()].size);
      }
      void operator()(const plan::Record& r) const { d.events_[r.event.index()].set(); }
      void operator()(const plan::Wait& w) const {
        if (!d.events_[w.event.index()].wait()) throw Stopped{};
      }
    };
    std::visit(Run{*this, index}, instruction.body);
  } catch (...) {
    stop();  // nobody comes to what this stream promised
    throw;
  }
  intervals_[index].end = now_ns();
  mark(kIdle);
}

void CpuDevice::run_collective(std::size_t index, const plan::Collective& c) {
  const GroupView& group = groups_[c.group.index()];
  const std::size_t n = group.members.size();
  if (n < 2) return;
  const Ring ring{messenger_, {c.group.value() + 1, sequence_[index]}, group.members, group.slot, scratch_[program_.instructions[index].stream.index()], payload_.reduction(index)};
  const std::span<std::byte> buffer = payload_.collective(index);
  switch (c.kind) {
    case plan::CollectiveKind::kAllReduce: all_reduce(ring, c.dtype, buffer); break;
    case plan::CollectiveKind::kReduceScatter: reduce_scatter(ring, c.dtype, buffer); break;
    case plan::CollectiveKind::kAllGather: all_gather(ring, c.dtype, buffer); break;
    case plan::CollectiveKind::kBroadcast: broadcast(ring, buffer); break;
    case plan::CollectiveKind::kSendReceive: send_receive(ring, buffer, payload_.landing(index)); break;
    case plan::CollectiveKind::kAllToAll: {
      std::vector<std::span<const std::byte>> outgoing;
      std::vector<std::span<std::byte>> incoming;
      const std::span<std::byte> landing = payload_.landing(index);
      std::size_t sent = 0;
      std::size_t received = 0;
      for (std::size_t j = 0; j < n; ++j) {
        const Part out = place_in(buffer.size(), sent, pair_bytes(c, plan_, n, group.slot, j));
        const Part in = place_in(landing.size(), received, pair_bytes(c, plan_, n, j, group.slot));
        outgoing.emplace_back(buffer.subspan(out.begin, out.end - out.begin));
        incoming.push_back(landing.subspan(in.begin, in.end - in.begin));
        sent += out.end - out.begin;
        received += in.end - in.begin;
      }
      all_to_all(ring, outgoing, incoming);
      break;
    }
  }
  payload_.collected(index);
}

}  // namespace stepcast::executor
