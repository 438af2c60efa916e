// sim/engine/phase.hpp — the order of events inside one instant.
// Lower fires first; equal phases fire in the order they were scheduled. The gaps are for phases to
// come: a new one takes a free number and says here why it sits where it does.
//
//   kFault        0  clock steps, link and rank failures: whatever happens at t sees the new state
//   kCompletion  20  work that ends at t ends before anything new starts, so freed resources are free
//   kDispatch    40  streams start what became ready; several starts at t share one solve
//   kSolve       60  rates are recomputed once, after every start and end of the instant is known
//   kSample      80  counters and samplers see the instant as it was settled
#pragma once

#include <cstdint>

namespace stepcast::engine {

enum class Phase : std::uint8_t { kFault = 0, kCompletion = 20, kDispatch = 40, kSolve = 60, kSample = 80 };

}  // namespace stepcast::engine
