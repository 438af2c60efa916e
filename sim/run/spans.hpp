// sim/run/spans.hpp — instructions as trace spans: one schema for simulated and measured runs, so that both stand side by side.
#pragma once

#include <string>
#include <vector>

#include "sim/plan/plan.hpp"
#include "sim/trace/record.hpp"

namespace stepcast::run {

// "rank 3 dp 1 tp 0": the coordinates that a trace shows.
std::string worker_label(const plan::Plan& plan, RankId rank);

// The span of an instruction of `rank` from `start` on. Its track is the instruction's stream, by name, among `streams`, which grows.
trace::Span span_of(const plan::Plan& plan, RankId rank, std::uint32_t instruction, TimePoint start, Duration duration,
                    std::vector<std::string>& streams);

// By worker, track and time: the order that stores and viewers expect.
void sort_spans(std::vector<trace::Span>& spans);

}  // namespace stepcast::run
