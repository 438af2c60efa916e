// Part 3 of check(): plays one column of the pipeline without time and finds what blocks it.
// Requires: parts 1 and 2 found nothing, so every meeting has all its participants.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "sim/plan/check_parts.hpp"

namespace stepcast::plan::check_parts {
namespace {

using Index = std::uint32_t;

struct Place {
  std::int32_t stage = 0;
  Index instruction = 0;
};

// A message or a collective: over once all participants have reached it.
struct Meeting {
  std::vector<Place> participants;
  std::size_t arrived = 0;
};

struct Worker {
  const Program* program = nullptr;
  std::vector<std::vector<Index>> queues;          // by stream, without Alloc and Free
  std::vector<std::size_t> cursor;                 // by stream
  std::vector<std::optional<Index>> meeting;       // by instruction
  std::vector<bool> reached;                       // by instruction: already counted as arrived
  std::vector<bool> recorded;                      // by event
  std::vector<Index> record_at;                    // by event: instruction
  std::vector<std::vector<Index>> waiting;         // by event: streams blocked on it

  [[nodiscard]] bool done(std::size_t stream) const { return cursor[stream] == queues[stream].size(); }
  [[nodiscard]] Index head(std::size_t stream) const { return queues[stream][cursor[stream]]; }
  [[nodiscard]] std::size_t stream_of(Index instruction) const { return program->instructions[instruction].stream.index(); }
};

class Play {
 public:
  explicit Play(Findings& findings) : f_{findings}, plan_{findings.plan()} {
    const std::int32_t stages = plan_.degrees[Axis::kPipeline];
    workers_.resize(static_cast<std::size_t>(stages));
    for (std::int32_t s = 0; s < stages; ++s) load(s);
  }

  void run() {
    for (std::int32_t s = 0; s < static_cast<std::int32_t>(workers_.size()); ++s) {
      for (Index q = 0; q < worker(s).queues.size(); ++q) ready_.emplace_back(s, q);
    }
    while (!ready_.empty()) {
      const auto [stage, stream] = ready_.back();
      ready_.pop_back();
      advance(stage, stream);
    }
    for (std::int32_t s = 0; s < static_cast<std::int32_t>(workers_.size()); ++s) {
      for (std::size_t q = 0; q < worker(s).queues.size(); ++q) {
        if (!worker(s).done(q)) return report(s, q);
      }
    }
  }

 private:
  Worker& worker(std::int32_t stage) { return workers_[static_cast<std::size_t>(stage)]; }

  // The meeting that this instruction takes part in, found by group or channel and its turn there.
  // kind 0: message (a, b) = (from, to); kind 1: collective (group, 0).
  Index meeting_of(int kind, std::int64_t a, std::int64_t b, bool sender, Place place) {
    auto& turns = turns_[{kind, a, b}];
    auto& turn = kind == 0 ? (sender ? turns.sends : turns.recvs) : turns.by_stage[place.stage];
    if (turn == turns.meetings.size()) {
      turns.meetings.push_back(static_cast<Index>(meetings_.size()));
      meetings_.emplace_back();
    }
    const Index index = turns.meetings[turn++];
    meetings_[index].participants.push_back(place);
    return index;
  }

  void load(std::int32_t stage) {
    Worker& w = worker(stage);
    w.program = &program_of(plan_, stage);
    const auto& instructions = w.program->instructions;
    w.queues.resize(w.program->streams.size());
    w.cursor.resize(w.program->streams.size());
    w.meeting.resize(instructions.size());
    w.reached.resize(instructions.size());
    w.recorded.resize(w.program->event_count);
    w.record_at.resize(w.program->event_count);
    w.waiting.resize(w.program->event_count);
    for (Index i = 0; i < instructions.size(); ++i) {
      const Body& body = instructions[i].body;
      if (std::holds_alternative<Alloc>(body) || std::holds_alternative<Free>(body)) continue;
      w.queues[instructions[i].stream.index()].push_back(i);
      if (const auto* send = std::get_if<Send>(&body)) {
        w.meeting[i] = meeting_of(0, stage, send->peer_stage, true, {stage, i});
      } else if (const auto* recv = std::get_if<Recv>(&body)) {
        w.meeting[i] = meeting_of(0, recv->peer_stage, stage, false, {stage, i});
      } else if (const auto* record = std::get_if<Record>(&body)) {
        w.record_at[record->event.index()] = i;
      } else if (const auto* c = std::get_if<Collective>(&body)) {
        if (spans_stages(plan_.groups[c->group.index()])) {
          w.meeting[i] = meeting_of(1, c->group.value(), 0, false, {stage, i});
        }
      }
    }
  }

  // Runs a stream until it is empty or blocked.
  void advance(std::int32_t stage, std::size_t stream) {
    Worker& w = worker(stage);
    while (!w.done(stream)) {
      const Index i = w.head(stream);
      const Body& body = w.program->instructions[i].body;
      if (const auto* wait = std::get_if<Wait>(&body)) {
        if (!w.recorded[wait->event.index()]) {
          w.waiting[wait->event.index()].push_back(static_cast<Index>(stream));
          return;
        }
      } else if (const auto* record = std::get_if<Record>(&body)) {
        w.recorded[record->event.index()] = true;
        for (const Index waiter : w.waiting[record->event.index()]) ready_.emplace_back(stage, waiter);
        w.waiting[record->event.index()].clear();
      } else if (w.meeting[i]) {
        Meeting& meeting = meetings_[*w.meeting[i]];
        if (!w.reached[i]) {
          w.reached[i] = true;
          ++meeting.arrived;
          if (meeting.arrived == meeting.participants.size()) {
            for (const Place& p : meeting.participants) {
              if (p.stage != stage) ready_.emplace_back(p.stage, static_cast<Index>(worker(p.stage).stream_of(p.instruction)));
            }
          }
        }
        if (meeting.arrived < meeting.participants.size()) return;
      }
      ++w.cursor[stream];
    }
  }

  // What the head of a blocked stream waits for.
  Place awaited(std::int32_t stage, std::size_t stream) {
    Worker& w = worker(stage);
    const Index head = w.head(stream);
    if (const auto* wait = std::get_if<Wait>(&w.program->instructions[head].body)) {
      return {stage, w.record_at[wait->event.index()]};
    }
    for (const Place& p : meetings_[*w.meeting[head]].participants) {
      if (!worker(p.stage).reached[p.instruction]) return p;
    }
    return {stage, head};
  }

  std::string text(std::int32_t stage, Index instruction) {
    const Worker& w = worker(stage);
    return fmt::format("instruction {} ({})", instruction, describe(*w.program, w.program->instructions[instruction]));
  }

  std::string explain(std::int32_t stage, std::size_t stream) {
    const Place target = awaited(stage, stream);
    const Worker& there = worker(target.stage);
    const std::size_t target_stream = there.stream_of(target.instruction);
    return fmt::format("stage {}, stream '{}': {} waits for {} of stage {}, queued on stream '{}' behind {}", stage,
                       worker(stage).program->streams[stream].name, text(stage, worker(stage).head(stream)),
                       text(target.stage, target.instruction), target.stage, there.program->streams[target_stream].name,
                       text(target.stage, there.head(target_stream)));
  }

  void report(std::int32_t stage, std::size_t stream) {
    // Every blocked stream waits for something queued on another blocked one: following that leads
    // into a cycle.
    std::vector<std::pair<std::int32_t, std::size_t>> path;
    std::pair<std::int32_t, std::size_t> at{stage, stream};
    while (std::find(path.begin(), path.end(), at) == path.end()) {
      path.push_back(at);
      const Place next = awaited(at.first, at.second);
      at = {next.stage, worker(next.stage).stream_of(next.instruction)};
    }
    const auto start = std::find(path.begin(), path.end(), at);
    std::vector<std::pair<std::int32_t, std::size_t>> cycle(start, path.end());
    std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
    std::size_t blocked = 0;
    for (const Worker& w : workers_) {
      for (std::size_t q = 0; q < w.queues.size(); ++q) blocked += w.done(q) ? 0 : 1;
    }
    PlanError& error =
        f_.at(PlanFault::kDeadlock, cycle.front().first, worker(cycle.front().first).head(cycle.front().second),
              fmt::format("the plan stops here: {} streams wait for each other in a circle, {} are blocked", cycle.size(),
                          blocked),
              "reorder one of the stages, or move one of the operations to a stream of its own");
    for (const auto& [s, q] : cycle) error.details.push_back(explain(s, q));
    for (std::int32_t s = 0; s < static_cast<std::int32_t>(workers_.size()); ++s) {
      for (std::size_t q = 0; q < worker(s).queues.size() && error.details.size() < kMostDetails; ++q) {
        if (worker(s).done(q) || std::find(cycle.begin(), cycle.end(), std::pair{s, q}) != cycle.end()) continue;
        error.details.push_back(explain(s, q));
      }
    }
  }

  static constexpr std::size_t kMostDetails = 20;

  struct Turns {
    std::vector<Index> meetings;
    std::size_t sends = 0;
    std::size_t recvs = 0;
    std::map<std::int32_t, std::size_t> by_stage;
  };

  Findings& f_;
  const Plan& plan_;
  std::vector<Worker> workers_;
  std::vector<Meeting> meetings_;
  std::map<std::tuple<int, std::int64_t, std::int64_t>, Turns> turns_;
  std::vector<std::pair<std::int32_t, Index>> ready_;
};

}  // namespace

void check_progress(Findings& findings) { Play{findings}.run(); }

}  // namespace stepcast::plan::check_parts
