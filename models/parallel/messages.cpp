#include "models/parallel/messages.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/base/check.hpp"

namespace stepcast::parallel {
namespace {

// What this pass hands to, or needs from, another stage.
std::optional<Message> outgoing(const Placement& placement, std::int32_t stage, const Pass& pass) {
  if (pass.kind == ActionKind::kBackwardWeight) return std::nullopt;
  const ChunkPlace here{stage, pass.chunk};
  const auto to = is_forward(pass) ? placement.next(here) : placement.previous(here);
  if (!to || to->stage == stage) return std::nullopt;
  return Message{is_forward(pass), here, *to, pass.micro_batch};
}

std::optional<Message> incoming(const Placement& placement, std::int32_t stage, const Pass& pass) {
  if (pass.kind == ActionKind::kBackwardWeight) return std::nullopt;
  const ChunkPlace here{stage, pass.chunk};
  const auto from = is_forward(pass) ? placement.previous(here) : placement.next(here);
  if (!from || from->stage == stage) return std::nullopt;
  return Message{is_forward(pass), *from, here, pass.micro_batch};
}

class Planner {
 public:
  Planner(const std::vector<ActionList>& lists, const Placement& placement, const Timeline& timeline, bool blocking)
      : lists_{lists}, placement_{placement}, timeline_{timeline} {
    out_.blocking = blocking;
    out_.stages.resize(lists.size());
    for (std::size_t i = 0; i < lists.size(); ++i) {
      out_.stages[i].awaited.resize(lists[i].size());
      out_.stages[i].sent.resize(lists[i].size());
      out_.stages[i].posted.resize(lists[i].size());
      out_.stages[i].taken_back.resize(lists[i].size());
    }
  }

  MessagePlan run() && {
    collect_sends();
    collect_receives();
    for (const auto& [ends, channel] : channels_) post(ends.second, channel);
    if (!out_.blocking) {
      for (const auto& [ends, channel] : channels_) take_back(channel);
    }
    return std::move(out_);
  }

 private:
  using Key = std::tuple<bool, ChunkPlace, std::uint16_t>;  // direction, receiver, micro-batch
  static Key key(const Message& m) { return {m.forward, m.to, m.micro_batch}; }

  void collect_sends() {
    for (std::size_t stage = 0; stage < lists_.size(); ++stage) {
      for (std::size_t k = 0; k < lists_[stage].size(); ++k) {
        for (const Pass& pass : Passes{lists_[stage][k]}) {
          const auto message = outgoing(placement_, static_cast<std::int32_t>(stage), pass);
          if (!message) continue;
          const auto id = static_cast<std::uint32_t>(out_.messages.size());
          out_.messages.push_back(*message);
          sent_at_.push_back(k);
          id_of_[key(*message)] = id;
          out_.stages[stage].sent[k].push_back(id);
          channels_[{message->from.stage, message->to.stage}].push_back(id);
        }
      }
    }
    needed_at_.resize(out_.messages.size());
    posted_at_.resize(out_.messages.size());
  }

  void collect_receives() {
    for (std::size_t stage = 0; stage < lists_.size(); ++stage) {
      for (std::size_t k = 0; k < lists_[stage].size(); ++k) {
        for (const Pass& pass : Passes{lists_[stage][k]}) {
          const auto message = incoming(placement_, static_cast<std::int32_t>(stage), pass);
          if (!message) continue;
          const std::uint32_t id = id_of_.at(key(*message));
          needed_at_[id] = static_cast<std::int64_t>(k);
          out_.stages[stage].awaited[k].push_back(id);
        }
      }
    }
  }

  // After which action of the receiver; -1: before the first.
  void post(std::int32_t receiver, const std::vector<std::uint32_t>& channel) {
    const std::int64_t early = out_.blocking ? 1 : 2;
    std::int64_t latest = static_cast<std::int64_t>(lists_[static_cast<std::size_t>(receiver)].size());
    for (auto id = channel.rbegin(); id != channel.rend(); ++id) {
      latest = std::max<std::int64_t>(-1, std::min(latest, needed_at_[*id] - early));
      posted_at_[*id] = latest;
    }
    StageMessages& stage = out_.stages[static_cast<std::size_t>(receiver)];
    for (const std::uint32_t id : channel)
      (posted_at_[id] < 0 ? stage.posted_first : stage.posted[static_cast<std::size_t>(posted_at_[id])]).push_back(id);
  }

  void take_back(const std::vector<std::uint32_t>& channel) {
    std::int64_t gone = 0;
    for (const std::uint32_t id : channel) {
      const Message& message = out_.messages[id];
      const auto& sender = timeline_.slots[static_cast<std::size_t>(message.from.stage)];
      const auto& receiver = timeline_.slots[static_cast<std::size_t>(message.to.stage)];
      gone = std::max(gone, sender[sent_at_[id]].end);
      if (posted_at_[id] >= 0) gone = std::max(gone, receiver[static_cast<std::size_t>(posted_at_[id])].end);
      std::size_t next = sent_at_[id] + 1;
      while (next < sender.size() && sender[next].start < gone) ++next;
      if (++next < sender.size()) out_.stages[static_cast<std::size_t>(message.from.stage)].taken_back[next].push_back(id);
    }
  }

  const std::vector<ActionList>& lists_;
  const Placement& placement_;
  const Timeline& timeline_;
  MessagePlan out_;
  std::vector<std::size_t> sent_at_;     // [message] action of the sender
  std::vector<std::int64_t> needed_at_;  // [message] action of the receiver
  std::vector<std::int64_t> posted_at_;
  std::map<Key, std::uint32_t> id_of_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<std::uint32_t>> channels_;  // (from, to), in send order
};

}  // namespace

MessagePlan plan_messages(const std::vector<ActionList>& lists, const Placement& placement, const Timeline& timeline,
                          bool blocking) {
  SIM_CHECK(!timeline.deadlock, *timeline.deadlock);
  return Planner{lists, placement, timeline, blocking}.run();
}

}  // namespace stepcast::parallel
