// sim/plan/builder.hpp — how a planner writes a Program: names are interned, equal kernels stored
// once, and every instruction takes stage, layer and micro-batch from the current context.
//
//   ProgramBuilder b{"stage 0 of 2"};
//   const StreamId compute = b.stream(StreamKind::kCompute, "compute");
//   b.context({Stage::kForward, 3, 0});
//   b.compute(compute, "attention.qkv", kernel);
//   b.order(compute, dp);  // what is issued on dp from here on runs after it
//   Program program = std::move(b).finish();
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/plan/program.hpp"

namespace stepcast::plan {

struct Context {
  Stage stage = Stage::kForward;
  std::optional<std::uint16_t> layer;
  std::optional<std::uint16_t> micro_batch;
};

class ProgramBuilder {
 public:
  explicit ProgramBuilder(std::string name) { program_.name = std::move(name); }

  // The stream of that name, declared by the first call. A program has at most 255 streams.
  StreamId stream(StreamKind kind, std::string_view name);
  LabelId label(std::string_view text);
  KernelId kernel(const Kernel& kernel);

  void context(Context context) { context_ = context; }
  void stage(Stage stage) { context_.stage = stage; }
  void layer(std::optional<std::uint16_t> layer) { context_.layer = layer; }
  void micro_batch(std::optional<std::uint16_t> micro_batch) { context_.micro_batch = micro_batch; }
  [[nodiscard]] const Context& context() const { return context_; }

  // Declares a buffer without allocating it. It may be allocated again after a free: a buffer of
  // every micro-batch can be one entry.
  BufferId buffer(std::string_view label, Bytes size, Category category, Memory memory = Memory::kDevice);
  // Declares and allocates.
  BufferId alloc(StreamId stream, std::string_view label, Bytes size, Category category,
                 Memory memory = Memory::kDevice);
  void alloc(StreamId stream, BufferId buffer);
  void free(StreamId stream, BufferId buffer);

  void compute(StreamId stream, std::string_view label, const Kernel& kernel);
  void compute(StreamId stream, std::string_view label, KernelId kernel);
  void collective(StreamId stream, std::string_view label, const Collective& collective);
  void send(StreamId stream, std::string_view label, std::int32_t peer_stage, Bytes bytes);
  void recv(StreamId stream, std::string_view label, std::int32_t peer_stage, Bytes bytes);
  void copy(StreamId stream, std::string_view label, CopyKind kind, Bytes bytes, Memory host = Memory::kPinnedHost);
  void host_compute(StreamId stream, std::string_view label, Flops flops, Bytes bytes);
  void load_batch(StreamId stream, std::string_view label, Bytes bytes);

  // Marks all that `stream` has been given so far; labelled as the last of it.
  EventId record(StreamId stream);
  // What `stream` is given from here on runs after the event; labelled as the event.
  void wait(StreamId stream, EventId event);
  // record(before) and wait(after): later work of `after` follows earlier work of `before`.
  EventId order(StreamId before, StreamId after);

  [[nodiscard]] const Program& program() const { return program_; }
  [[nodiscard]] Program finish() && { return std::move(program_); }

 private:
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  struct KernelHash {
    std::size_t operator()(const Kernel& kernel) const;
  };
  void add(StreamId stream, LabelId label, const Body& body);

  Program program_;
  Context context_;
  std::unordered_map<std::string, LabelId, TextHash, std::equal_to<>> labels_;
  std::unordered_map<Kernel, KernelId, KernelHash> kernels_;
  std::vector<std::optional<LabelId>> last_label_;  // by stream
  std::vector<LabelId> event_label_;
};

}  // namespace stepcast::plan
