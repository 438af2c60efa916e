#include "sim/run/spans.hpp"

#include <algorithm>
#include <tuple>
#include <variant>

#include <fmt/format.h>

namespace stepcast::run {
namespace {

std::optional<std::int64_t> bytes_of(const plan::Body& body) {
  if (const auto* c = std::get_if<plan::Collective>(&body)) return c->bytes.count();
  if (const auto* s = std::get_if<plan::Send>(&body)) return s->bytes.count();
  if (const auto* r = std::get_if<plan::Recv>(&body)) return r->bytes.count();
  if (const auto* copy = std::get_if<plan::Copy>(&body)) return copy->bytes.count();
  return std::nullopt;
}

std::uint8_t track_of(const std::string& name, std::vector<std::string>& streams) {
  const auto index = std::find(streams.begin(), streams.end(), name) - streams.begin();
  if (static_cast<std::size_t>(index) == streams.size()) streams.push_back(name);
  return static_cast<std::uint8_t>(index);
}

}  // namespace

std::string worker_label(const plan::Plan& plan, RankId rank) {
  const plan::PerAxis at = plan.coordinates(rank);
  std::string text = fmt::format("rank {}", rank.value());
  for (const plan::Axis axis : {plan::Axis::kData, plan::Axis::kPipeline, plan::Axis::kTensor}) {
    if (plan.degrees[axis] > 1) text += fmt::format(" {} {}", plan::name_of(axis), at[axis]);
  }
  return text;
}

trace::Span span_of(const plan::Plan& plan, RankId rank, std::uint32_t instruction, TimePoint start, Duration duration,
                    std::vector<std::string>& streams) {
  const plan::Program& program = plan.program(rank);
  const plan::Instruction& i = program.instructions[instruction];
  trace::Span span{.worker = rank,
                   .stream = track_of(program.streams[i.stream.index()].name, streams),
                   .start = start,
                   .duration = duration,
                   .name = program.labels[i.label.index()],
                   .category = plan::name_of(i.stage),
                   .layer = i.layer,
                   .micro_batch = i.micro_batch,
                   .bytes = bytes_of(i.body),
                   .flops = std::nullopt};
  if (const auto* compute = std::get_if<plan::Compute>(&i.body)) {
    const plan::Kernel& kernel = program.kernels[compute->kernel.index()];
    if (kernel.flops.si() > 0.0) span.flops = kernel.flops.si();
  }
  return span;
}

void sort_spans(std::vector<trace::Span>& spans) {
  std::stable_sort(spans.begin(), spans.end(), [](const trace::Span& a, const trace::Span& b) {
    return std::tie(a.worker, a.stream, a.start) < std::tie(b.worker, b.stream, b.start);
  });
}

}  // namespace stepcast::run
