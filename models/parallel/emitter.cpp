#include "models/parallel/emitter.hpp"

namespace stepcast::parallel {

std::optional<plan::BufferId> Emitter::acquire(plan::StreamId stream, std::string_view label, Bytes size,
                                               plan::Category category) {
  if (size.count() == 0) return std::nullopt;
  std::vector<plan::BufferId>& free = free_[Key{std::string{label}, size, category}];
  if (free.empty()) return builder.alloc(stream, label, size, category);
  const plan::BufferId buffer = free.back();
  free.pop_back();
  builder.alloc(stream, buffer);
  return buffer;
}

void Emitter::release(plan::StreamId stream, std::optional<plan::BufferId> buffer) {
  if (!buffer) return;
  builder.free(stream, *buffer);
  const plan::Buffer& kind = builder.program().buffers.at(buffer->index());
  free_[Key{builder.program().labels.at(kind.label.index()), kind.size, kind.category}].push_back(*buffer);
}

void Emitter::host_waits_for(plan::StreamId stream) { builder.order(stream, builder.stream(plan::StreamKind::kIssue, "issue")); }

}  // namespace stepcast::parallel
