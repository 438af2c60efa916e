// sim/run/interpreter_events.hpp — what the interpreter asks the engine to be woken for.
#pragma once

#include <cstdint>

namespace stepcast::run {

enum InterpreterEvent : std::uint32_t { kBeginCollective, kEndCollective, kBeginMessage, kLinkChange, kEndChain, kBeginHostWork };

}  // namespace stepcast::run
