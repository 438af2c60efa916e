// Kernels beside collectives: their rate changes with what collectives take of the GPU while they run.
#include <algorithm>

#include "sim/run/interpreter.hpp"
#include "sim/run/interpreter_events.hpp"

namespace stepcast::run {

void Interpreter::welcome(std::uint32_t stream, TimePoint from, const gpu::Taken& taken) {
  const std::uint32_t id = streams_[stream].worker;
  Worker& worker = workers_[id];
  if (worker.chain) play_chain(worker, engine_.now());
  worker.guests.push_back({stream, from, taken});
  if (worker.chain) await_chain(id);
}

void Interpreter::dismiss(std::uint32_t stream) {
  const std::uint32_t id = streams_[stream].worker;
  Worker& worker = workers_[id];
  if (std::none_of(worker.guests.begin(), worker.guests.end(), [&](const Guest& g) { return g.stream == stream; })) return;
  if (worker.chain) play_chain(worker, engine_.now());
  std::erase_if(worker.guests, [&](const Guest& g) { return g.stream == stream; });
  if (worker.chain) await_chain(id);
}

// What the whole chain would take with the guests that are there at `at`; `until`: the next arrival, if it is earlier.
Duration Interpreter::chain_time(const Worker& worker, TimePoint at, TimePoint& until) {
  gpu::Taken taken;
  for (const Guest& guest : worker.guests) {
    if (guest.from > at) {
      until = std::min(until, guest.from);
      continue;
    }
    taken.sms += guest.taken.sms;
    taken.memory = taken.memory + guest.taken.memory;
  }
  const StreamState& stream = streams_[worker.chain->stream];
  const CompiledStep& step = stream.program->steps[stream.position];
  if (taken.sms == 0) return step.busy;
  return slow_.busy(worker.program, worker.chain->stream - worker.first_stream, stream.position, taken);
}

// Advances the chain to `until` at most, with the guests known now; its end if that is earlier.
TimePoint Interpreter::play_chain(Worker& worker, TimePoint until) {
  Chain& chain = *worker.chain;
  while (chain.settled < until) {
    TimePoint next = until;
    const Duration whole = chain_time(worker, chain.settled, next);
    const Duration rest = chain.left == 1.0 ? whole : Duration::from_seconds(chain.left * whole.seconds());
    if (chain.settled + rest <= next) {
      chain.settled = chain.settled + rest;
      chain.left = 0.0;
      return chain.settled;
    }
    chain.left = std::max(0.0, chain.left - (next - chain.settled) / whole);
    chain.settled = next;
  }
  return chain.settled;
}

void Interpreter::await_chain(std::uint32_t id) {
  Worker& worker = workers_[id];
  engine_.cancel(worker.chain->end);
  const Chain kept = *worker.chain;
  const TimePoint end = play_chain(worker, TimePoint::max());
  *worker.chain = kept;
  worker.chain->end = engine_.at(std::max(end, engine_.now()), engine::Phase::kCompletion, *this, kEndChain, id);
}

void Interpreter::end_chain(std::uint32_t id) {
  Worker& worker = workers_[id];
  const std::uint32_t index = worker.chain->stream;
  const Duration busy = engine_.now() - worker.chain->begin;
  worker.chain.reset();
  StreamState& stream = streams_[index];
  finish_kernels(stream, stream.program->steps[stream.position], busy);
  ++stream.position;
  make_ready(index);
}

}  // namespace stepcast::run
