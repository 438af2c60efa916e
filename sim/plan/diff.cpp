#include <algorithm>

#include <fmt/format.h>

#include "sim/plan/names.hpp"
#include "sim/plan/print.hpp"

namespace stepcast::plan {
namespace {

// Instructions are compared by what they say, numbered by what they are in their own program.
std::string said(const Plan& plan, const Program& p, const Instruction& i) {
  std::string text = fmt::format("{} {} '{}'", p.streams[i.stream.index()].name, opcode_of(i.body), p.labels[i.label.index()]);
  text += fmt::format(", {}", name_of(i.stage));
  if (i.layer) text += fmt::format(", layer {}", *i.layer);
  if (i.micro_batch) text += fmt::format(", micro-batch {}", *i.micro_batch);
  return text + ": " + describe_work(plan, p, i);
}

// One-to-one partners among the events, or buffers, of two programs: a renumbering is no difference.
class Pairing {
 public:
  Pairing(std::size_t a, std::size_t b) : a_(a), b_(b) {}
  // True when x and y were never paired with others; pairs them.
  bool match(std::size_t x, std::size_t y) {
    if (!a_[x] && !b_[y]) {
      a_[x] = y;
      b_[y] = x;
      return true;
    }
    return a_[x] == y;
  }

 private:
  std::vector<std::optional<std::size_t>> a_, b_;
};

class ProgramDiff {
 public:
  ProgramDiff(const Plan& a, const Program& pa, const Plan& b, const Program& pb)
      : a_{a}, b_{b}, pa_{pa}, pb_{pb}, events_{pa.event_count, pb.event_count}, buffers_{pa.buffers.size(), pb.buffers.size()} {}

  std::vector<std::string> run(const std::string& where) {
    std::vector<std::string> found;
    std::size_t i = 0;
    std::size_t j = 0;
    const auto& la = pa_.instructions;
    const auto& lb = pb_.instructions;
    while (i < la.size() || j < lb.size()) {
      if (i < la.size() && j < lb.size() && same(la[i], lb[j])) {
        ++i;
        ++j;
        continue;
      }
      const auto [skip_a, skip_b] = resume(i, j);
      if (skip_a == 1 && skip_b == 1) {
        found.push_back(fmt::format("{}, instruction {}: {}\n  was: {}", where, j, said(b_, pb_, lb[j]), said(a_, pa_, la[i])));
      } else {
        for (std::size_t k = 0; k < skip_a; ++k) {
          found.push_back(fmt::format("{}: gone: instruction {}: {}", where, i + k, said(a_, pa_, la[i + k])));
        }
        for (std::size_t k = 0; k < skip_b; ++k) {
          found.push_back(fmt::format("{}: new: instruction {}: {}", where, j + k, said(b_, pb_, lb[j + k])));
        }
      }
      i += skip_a;
      j += skip_b;
    }
    return found;
  }

 private:
  // How far each list must be skipped for both to agree again (for kAgree instructions).
  std::pair<std::size_t, std::size_t> resume(std::size_t i, std::size_t j) const {
    const std::size_t left_a = pa_.instructions.size() - i;
    const std::size_t left_b = pb_.instructions.size() - j;
    for (std::size_t sum = 1; sum <= kWindow; ++sum) {
      // Near the middle first: a changed instruction is a change, not a pair of gone and new.
      for (std::size_t offset = 0; offset <= (sum + 1) / 2; ++offset) {
        for (const std::size_t a : {sum / 2 + offset, sum / 2 - std::min(offset, sum / 2)}) {
          if (a <= sum && a <= left_a && sum - a <= left_b && agree(i + a, j + sum - a)) return {a, sum - a};
        }
      }
    }
    return {left_a, left_b};
  }

  bool agree(std::size_t i, std::size_t j) const {
    for (std::size_t k = 0; k < kAgree; ++k) {
      const bool end_a = i + k == pa_.instructions.size();
      const bool end_b = j + k == pb_.instructions.size();
      if (end_a || end_b) return end_a && end_b;
      if (!alike(pa_.instructions[i + k], pb_.instructions[j + k])) return false;
    }
    return true;
  }

  bool same(const Instruction& x, const Instruction& y) {
    if (!alike(x, y)) return false;
    if (const auto* e = std::get_if<Record>(&x.body)) return events_.match(e->event.index(), std::get<Record>(y.body).event.index());
    if (const auto* e = std::get_if<Wait>(&x.body)) return events_.match(e->event.index(), std::get<Wait>(y.body).event.index());
    if (const auto* e = std::get_if<Alloc>(&x.body)) return buffers_.match(e->buffer.index(), std::get<Alloc>(y.body).buffer.index());
    if (const auto* e = std::get_if<Free>(&x.body)) return buffers_.match(e->buffer.index(), std::get<Free>(y.body).buffer.index());
    return true;
  }

  // The same but for the numbers of events and buffers.
  bool alike(const Instruction& x, const Instruction& y) const {
    if (x.body.index() != y.body.index() || x.stage != y.stage || x.layer != y.layer || x.micro_batch != y.micro_batch) return false;
    if (pa_.streams[x.stream.index()] != pb_.streams[y.stream.index()]) return false;
    if (pa_.labels[x.label.index()] != pb_.labels[y.label.index()]) return false;
    if (const auto* c = std::get_if<Compute>(&x.body)) {
      return pa_.kernels[c->kernel.index()] == pb_.kernels[std::get<Compute>(y.body).kernel.index()];
    }
    if (const auto* c = std::get_if<Collective>(&x.body)) {
      Collective other = std::get<Collective>(y.body);
      // By name: what a group of that name consists of is compared once, not at every use.
      if (a_.groups[c->group.index()].name != b_.groups[other.group.index()].name) return false;
      if (c->volumes.has_value() != other.volumes.has_value()) return false;
      if (c->volumes && a_.volumes[c->volumes->index()].name != b_.volumes[other.volumes->index()].name) return false;
      other.group = c->group;
      other.volumes = c->volumes;
      return *c == other;
    }
    if (const auto* e = std::get_if<Alloc>(&x.body)) return alike(e->buffer, std::get<Alloc>(y.body).buffer);
    if (const auto* e = std::get_if<Free>(&x.body)) return alike(e->buffer, std::get<Free>(y.body).buffer);
    if (std::holds_alternative<Record>(x.body) || std::holds_alternative<Wait>(x.body)) return true;
    return x.body == y.body;
  }

  bool alike(BufferId x, BufferId y) const {
    const Buffer& a = pa_.buffers[x.index()];
    const Buffer& b = pb_.buffers[y.index()];
    return a.size == b.size && a.memory == b.memory && a.category == b.category &&
           pa_.labels[a.label.index()] == pb_.labels[b.label.index()];
  }

  static constexpr std::size_t kWindow = 200;  // instructions looked ahead, both lists together
  static constexpr std::size_t kAgree = 3;

  const Plan& a_;
  const Plan& b_;
  const Program& pa_;
  const Program& pb_;
  Pairing events_, buffers_;
};

template <class T>
void compare(std::vector<std::string>& out, const char* what, const T& before, const T& after) {
  if (before != after) out.push_back(fmt::format("{}: {}, was {}", what, after, before));
}

std::string text_of(const Group& group) {
  std::string text;
  for (const Axis axis : group.axes) text += (text.empty() ? "" : ",") + std::string{name_of(axis)};
  if (group.split)
    text += fmt::format(" {} blocks of {} {}", group.split->across ? "across" : "within", group.split->block, name_of(group.split->axis));
  if (group.slice) text += fmt::format(" sliced {} by {}", group.slice->size, group.slice->stride);
  return group.stages.empty() ? text : fmt::format("{} on stages {}", text, fmt::join(group.stages, ","));
}

void compare_groups(std::vector<std::string>& out, const Plan& before, const Plan& after) {
  const auto find = [](const Plan& plan, const std::string& name) {
    return std::find_if(plan.groups.begin(), plan.groups.end(), [&](const Group& g) { return g.name == name; });
  };
  for (const Group& group : before.groups) {
    const auto other = find(after, group.name);
    if (other == after.groups.end()) {
      out.push_back(fmt::format("group {}: gone", group.name));
    } else {
      compare(out, fmt::format("group {}", group.name).c_str(), text_of(group), text_of(*other));
    }
  }
  for (const Group& group : after.groups) {
    if (find(before, group.name) == before.groups.end()) out.push_back(fmt::format("group {}: new ({})", group.name, text_of(group)));
  }
}

void compare_volumes(std::vector<std::string>& out, const Plan& before, const Plan& after) {
  const auto find = [](const Plan& plan, const std::string& name) {
    return std::find_if(plan.volumes.begin(), plan.volumes.end(), [&](const VolumeTable& t) { return t.name == name; });
  };
  for (const VolumeTable& table : before.volumes) {
    const auto other = find(after, table.name);
    if (other == after.volumes.end()) {
      out.push_back(fmt::format("volumes {}: gone", table.name));
    } else if (table != *other) {
      out.push_back(fmt::format("volumes {}: {} values by {} differ", table.name, other->values.size(), name_of(other->form)));
    }
  }
  for (const VolumeTable& table : after.volumes) {
    if (find(before, table.name) == before.volumes.end()) out.push_back(fmt::format("volumes {}: new", table.name));
  }
}

}  // namespace

std::vector<std::string> diff(const Plan& before, const Plan& after, std::size_t limit) {
  std::vector<std::string> out;
  compare(out, "name", before.name, after.name);
  for (const Axis axis : kMegatronOrder) compare(out, name_of(axis), before.degrees[axis], after.degrees[axis]);
  if (before.order != after.order) out.emplace_back("the order of the axes differs");
  compare(out, "samples", before.work.samples, after.work.samples);
  compare(out, "tokens", before.work.tokens, after.work.tokens);
  compare(out, "model FLOPs", before.work.model_flops.si(), after.work.model_flops.si());
  compare(out, "FLOPs convention", before.work.flops_convention, after.work.flops_convention);
  compare_groups(out, before, after);
  compare_volumes(out, before, after);
  compare(out, "programs", before.programs.size(), after.programs.size());
  if (before.program_of_stage != after.program_of_stage) out.emplace_back("the programs of the pipeline stages differ");
  for (std::size_t p = 0; p < std::min(before.programs.size(), after.programs.size()); ++p) {
    const Program& a = before.programs[p];
    const Program& b = after.programs[p];
    const std::string where = fmt::format("program {}", p);
    compare(out, (where + " name").c_str(), a.name, b.name);
    for (std::string& text : ProgramDiff{before, a, after, b}.run(where)) out.push_back(std::move(text));
  }
  if (out.size() > limit) {
    const std::size_t more = out.size() - limit;
    out.resize(limit);
    out.push_back(fmt::format("and {} more", more));
  }
  return out;
}

}  // namespace stepcast::plan
