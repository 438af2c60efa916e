#include "sim/run/channel.hpp"

#include <algorithm>

#include "sim/base/check.hpp"

namespace stepcast::run {

void Channel::send(std::uint32_t stream, TimePoint time, Bytes bytes, Outcome& out) {
  SIM_CHECK(messages_.empty() || !messages_.back().sender, stream);  // messages of one direction share a stream
  messages_.push_back({.bytes = bytes, .sent = time, .sender = stream});
  settle(TimePoint{}, out);
}

void Channel::receive(std::uint32_t stream, TimePoint time, Outcome& out) {
  SIM_CHECK(!asked_, stream);
  asked_ = Asked{stream, time};
  settle(TimePoint{}, out);
}

void Channel::arrive(TimePoint now, Outcome& out) {
  const auto moved = std::find_if(messages_.begin(), messages_.end(), [](const Message& m) { return !m.arrival; });
  SIM_CHECK(moving_ && moved != messages_.end());
  moved->arrival = now;
  moving_ = false;
  settle(now, out);
}

void Channel::settle(TimePoint now, Outcome& out) {
  out.over.clear();
  out.moves.reset();
  release(std::max(now, deliver(out)), out);
  start(now, out);
}

// When it was received; nothing: long ago.
TimePoint Channel::deliver(Outcome& out) {
  if (!asked_ || messages_.empty() || !messages_.front().arrival) return {};
  const Message& m = messages_.front();
  const TimePoint met = std::max(m.sent, asked_->time);
  const bool was_first = *m.arrival < asked_->time;
  if (m.sender) {
    const TimePoint known = std::max(*m.arrival, asked_->time);
    out.over.push_back({.stream = *m.sender, .at = known, .moving_since = was_first ? known : met, .shown_from = met});
  }
  const TimePoint end = was_first ? asked_->time + ahead_.copy(m.bytes) : *m.arrival;
  out.over.push_back({.stream = asked_->stream, .at = end, .moving_since = met, .shown_from = met});
  messages_.erase(messages_.begin());
  asked_.reset();
  return end;
}

void Channel::release(TimePoint now, Outcome& out) {
  Bytes sent;
  for (Message& m : messages_) {
    sent += m.bytes;
    if (sent > ahead_.buffered) return;
    if (!m.sender || (is_eager(m) && !m.arrival)) continue;
    out.over.push_back({.stream = *m.sender, .at = std::max({m.sent, m.arrival.value_or(m.sent), now}), .moving_since = m.sent, .shown_from = m.sent});
    m.sender.reset();
  }
}

void Channel::start(TimePoint now, Outcome& out) {
  if (moving_) return;
  const auto next = std::find_if(messages_.begin(), messages_.end(), [](const Message& m) { return !m.arrival; });
  if (next == messages_.end()) return;
  const bool asked = asked_ && next == messages_.begin();
  if (!is_eager(*next) && !asked) return;
  out.moves = std::max(now, is_eager(*next) ? next->sent : std::max(next->sent, asked_->time));
  out.bytes = next->bytes;
  moving_ = true;
}

}  // namespace stepcast::run
