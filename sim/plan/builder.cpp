#include "sim/plan/builder.hpp"

#include "sim/base/check.hpp"
#include "sim/base/hash.hpp"

namespace stepcast::plan {

StreamId ProgramBuilder::stream(StreamKind kind, std::string_view name) {
  for (std::size_t i = 0; i < program_.streams.size(); ++i) {
    if (program_.streams[i].name == name) {
      SIM_CHECK(program_.streams[i].kind == kind, name);
      return StreamId{i};
    }
  }
  SIM_CHECK(program_.streams.size() < 255);
  program_.streams.push_back({kind, std::string{name}});
  last_label_.emplace_back();
  return StreamId{program_.streams.size() - 1};
}

LabelId ProgramBuilder::label(std::string_view text) {
  if (const auto found = labels_.find(text); found != labels_.end()) return found->second;
  const LabelId id{program_.labels.size()};
  program_.labels.emplace_back(text);
  labels_.emplace(text, id);
  return id;
}

std::size_t ProgramBuilder::KernelHash::operator()(const Kernel& k) const {
  Fingerprint key;
  key.add(static_cast<std::uint64_t>(k.op) << 32 | static_cast<std::uint64_t>(k.pass) << 16 |
          static_cast<std::uint64_t>(k.dtype));
  if (k.gemm) {
    for (const std::int64_t v : {k.gemm->batch, k.gemm->m, k.gemm->n, k.gemm->k}) key.add(v);
  }
  if (k.attention) {
    for (const std::int64_t v : {k.attention->batch, k.attention->query_heads, k.attention->kv_heads,
                                 k.attention->query_length, k.attention->kv_length, k.attention->head_dim}) {
      key.add(v);
    }
  }
  key.add(k.flops.si() + 0.0);  // -0.0 equals 0.0
  key.add(k.read.count());
  key.add(k.written.count());
  return static_cast<std::size_t>(key.value());
}

KernelId ProgramBuilder::kernel(const Kernel& kernel) {
  const auto [entry, is_new] = kernels_.try_emplace(kernel, KernelId{program_.kernels.size()});
  if (is_new) program_.kernels.push_back(kernel);
  return entry->second;
}

BufferId ProgramBuilder::buffer(std::string_view text, Bytes size, Category category, Memory memory) {
  program_.buffers.push_back({label(text), size, memory, category});
  return BufferId{program_.buffers.size() - 1};
}

BufferId ProgramBuilder::alloc(StreamId stream, std::string_view text, Bytes size, Category category, Memory memory) {
  const BufferId id = buffer(text, size, category, memory);
  alloc(stream, id);
  return id;
}

void ProgramBuilder::alloc(StreamId stream, BufferId buffer) {
  add(stream, program_.buffers.at(buffer.index()).label, Alloc{buffer});
}

void ProgramBuilder::free(StreamId stream, BufferId buffer) {
  add(stream, program_.buffers.at(buffer.index()).label, Free{buffer});
}

void ProgramBuilder::compute(StreamId stream, std::string_view text, const Kernel& k) {
  compute(stream, text, kernel(k));
}

void ProgramBuilder::compute(StreamId stream, std::string_view text, KernelId kernel) {
  add(stream, label(text), Compute{kernel});
}

void ProgramBuilder::collective(StreamId stream, std::string_view text, const Collective& collective) {
  add(stream, label(text), collective);
}

void ProgramBuilder::send(StreamId stream, std::string_view text, std::int32_t peer_stage, Bytes bytes) {
  add(stream, label(text), Send{peer_stage, bytes});
}

void ProgramBuilder::recv(StreamId stream, std::string_view text, std::int32_t peer_stage, Bytes bytes) {
  add(stream, label(text), Recv{peer_stage, bytes});
}

void ProgramBuilder::copy(StreamId stream, std::string_view text, CopyKind kind, Bytes bytes, Memory host) {
  add(stream, label(text), Copy{kind, bytes, host});
}

void ProgramBuilder::host_compute(StreamId stream, std::string_view text, Flops flops, Bytes bytes) {
  add(stream, label(text), HostCompute{flops, bytes});
}

void ProgramBuilder::load_batch(StreamId stream, std::string_view text, Bytes bytes) {
  add(stream, label(text), LoadBatch{bytes});
}

EventId ProgramBuilder::record(StreamId stream) {
  const std::optional<LabelId> last = last_label_.at(stream.index());
  const LabelId id = last ? *last : label("start");
  event_label_.push_back(id);
  const EventId event{std::size_t{program_.event_count++}};
  add(stream, id, Record{event});
  return event;
}

void ProgramBuilder::wait(StreamId stream, EventId event) {
  // A wait must not rename what the stream did last.
  const std::optional<LabelId> last = last_label_.at(stream.index());
  add(stream, event_label_.at(event.index()), Wait{event});
  last_label_[stream.index()] = last;
}

EventId ProgramBuilder::order(StreamId before, StreamId after) {
  const EventId event = record(before);
  wait(after, event);
  return event;
}

void ProgramBuilder::add(StreamId stream, LabelId label, const Body& body) {
  last_label_.at(stream.index()) = label;
  program_.instructions.push_back({stream, context_.stage, label, context_.layer, context_.micro_batch, body});
}

}  // namespace stepcast::plan
