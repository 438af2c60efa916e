// Part 2 of check(): what the stages of a pipeline must agree on.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "sim/plan/check_parts.hpp"

namespace stepcast::plan::check_parts {
namespace {

struct Channel {
  std::vector<std::size_t> sends;  // instruction indices in the sender's program
  std::vector<std::size_t> recvs;  // in the receiver's
};

using Channels = std::map<std::pair<std::int32_t, std::int32_t>, Channel>;  // (from, to)

Channels channels_of(const Plan& plan) {
  Channels channels;
  for (std::int32_t stage = 0; stage < plan.degrees[Axis::kPipeline]; ++stage) {
    const Program& program = program_of(plan, stage);
    for (std::size_t i = 0; i < program.instructions.size(); ++i) {
      const Body& body = program.instructions[i].body;
      if (const auto* send = std::get_if<Send>(&body)) channels[{stage, send->peer_stage}].sends.push_back(i);
      if (const auto* recv = std::get_if<Recv>(&body)) channels[{recv->peer_stage, stage}].recvs.push_back(i);
    }
  }
  return channels;
}

// The first disagreement of one channel; later ones are usually its consequence.
void check_channel(Findings& f, std::int32_t from, std::int32_t to, const Channel& channel) {
  const Program& sender = program_of(f.plan(), from);
  const Program& receiver = program_of(f.plan(), to);
  const std::size_t pairs = std::min(channel.sends.size(), channel.recvs.size());
  for (std::size_t k = 0; k < pairs; ++k) {
    const Instruction& out = sender.instructions[channel.sends[k]];
    const Instruction& in = receiver.instructions[channel.recvs[k]];
    const Bytes sent = std::get<Send>(out.body).bytes;
    const Bytes expected = std::get<Recv>(in.body).bytes;
    const std::string there =
        fmt::format("instruction {} of stage {} ({})", channel.recvs[k], to, describe(receiver, in));
    if (sent != expected) {
      f.at(PlanFault::kMessageSize, from, channel.sends[k],
           fmt::format("message {} from stage {} to stage {} has {} bytes, but {} expects {}", k, from, to, sent.count(),
                       there, expected.count()),
           "messages between two stages match in the order in which they are issued");
      return;
    }
    if (out.micro_batch && in.micro_batch && *out.micro_batch != *in.micro_batch) {
      f.at(PlanFault::kMessageOrder, from, channel.sends[k],
           fmt::format("message {} from stage {} to stage {} carries micro-batch {}, but {} expects micro-batch {}", k, from,
                       to, *out.micro_batch, there, *in.micro_batch),
           "issue sends and receives of the two stages in the same order of micro-batches");
      return;
    }
  }
  if (channel.sends.size() > pairs) {
    f.at(PlanFault::kMessageUnmatched, from, channel.sends[pairs],
         fmt::format("nothing receives message {} from stage {} to stage {}: {} sent, {} received", pairs, from, to,
                     channel.sends.size(), channel.recvs.size()),
         fmt::format("add a recv from stage {} to the program of stage {}, or drop the send", from, to));
  } else if (channel.recvs.size() > pairs) {
    f.at(PlanFault::kMessageUnmatched, to, channel.recvs[pairs],
         fmt::format("nothing sends message {} from stage {} to stage {}: {} received, {} sent", pairs, from, to,
                     channel.recvs.size(), channel.sends.size()),
         fmt::format("add a send to stage {} to the program of stage {}, or drop the recv", to, from));
  }
}

std::string text_of(const Collective& c) {
  return fmt::format("{} of {} bytes {}{}", name_of(c.kind), c.bytes.count(), name_of(c.dtype),
                     c.volumes ? fmt::format(" with volumes {}", c.volumes->value()) : "");
}

bool same_operation(const Collective& a, const Collective& b) {
  return a.kind == b.kind && a.bytes == b.bytes && a.dtype == b.dtype && a.volumes == b.volumes;
}

// Compares what two stages issue on one group, up to the first difference.
void compare(Findings& f, const std::string& name, std::int32_t stage, const std::vector<std::size_t>& mine,
             std::int32_t other_stage, const std::vector<std::size_t>& theirs) {
  const Program& program = program_of(f.plan(), stage);
  const Program& other = program_of(f.plan(), other_stage);
  const char* const hint = "all members of a group issue the same collectives in the same order";
  for (std::size_t k = 0; k < mine.size() && k < theirs.size(); ++k) {
    const Instruction& there = other.instructions[theirs[k]];
    const auto& own = std::get<Collective>(program.instructions[mine[k]].body);
    const auto& foreign = std::get<Collective>(there.body);
    if (same_operation(own, foreign)) continue;
    f.at(PlanFault::kCollectiveMismatch, stage, mine[k],
         fmt::format("collective {} on group '{}' is {}, but on stage {} it is {} (instruction {}: {})", k, name,
                     text_of(own), other_stage, text_of(foreign), theirs[k], describe(other, there)),
         hint);
    return;
  }
  if (mine.size() == theirs.size()) return;
  const bool more = mine.size() > theirs.size();
  const std::size_t first = std::min(mine.size(), theirs.size());
  f.at(PlanFault::kCollectiveMismatch, more ? stage : other_stage, more ? mine[first] : theirs[first],
       fmt::format("collective {} on group '{}' has no counterpart on stage {}, which issues {}", first, name,
                   more ? other_stage : stage, first),
       hint);
}

}  // namespace

void check_messages(Findings& findings) {
  for (const auto& [ends, channel] : channels_of(findings.plan())) {
    check_channel(findings, ends.first, ends.second, channel);
  }
}

void check_collectives(Findings& findings) {
  const Plan& plan = findings.plan();
  const auto stages = static_cast<std::size_t>(plan.degrees[Axis::kPipeline]);
  std::vector<std::vector<std::vector<std::size_t>>> issued(plan.groups.size());  // [group][stage]
  for (auto& by_stage : issued) by_stage.resize(stages);
  for (std::size_t stage = 0; stage < stages; ++stage) {
    const Program& program = program_of(plan, static_cast<std::int32_t>(stage));
    for (std::size_t i = 0; i < program.instructions.size(); ++i) {
      const auto* c = std::get_if<Collective>(&program.instructions[i].body);
      if (c && spans_stages(plan.groups[c->group.index()])) issued[c->group.index()][stage].push_back(i);
    }
  }
  for (std::size_t g = 0; g < plan.groups.size(); ++g) {
    if (!spans_stages(plan.groups[g])) continue;  // all members run one program
    const std::vector<std::int32_t> members = stages_of(plan, plan.groups[g]);
    for (std::size_t m = 1; m < members.size(); ++m) {
      compare(findings, plan.groups[g].name, members[m], issued[g][static_cast<std::size_t>(members[m])], members[0],
              issued[g][static_cast<std::size_t>(members[0])]);
    }
  }
}

}  // namespace stepcast::plan::check_parts
