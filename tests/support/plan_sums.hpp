// tests/support/plan_sums.hpp — sums over a program's instructions, and what its buffers hold, for
// tests that compare a plan with a closed form.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/plan/plan.hpp"

namespace stepcast::test {

struct CollectiveSum {
  std::int64_t count = 0;
  std::int64_t bytes = 0;
  friend bool operator==(const CollectiveSum&, const CollectiveSum&) = default;
};

template <class Keep>
CollectiveSum sum_collectives(const plan::Program& program, Keep keep) {
  CollectiveSum sum;
  for (const plan::Instruction& i : program.instructions) {
    const auto* c = std::get_if<plan::Collective>(&i.body);
    if (c == nullptr || !keep(i, *c)) continue;
    ++sum.count;
    sum.bytes += c->bytes.count();
  }
  return sum;
}

inline CollectiveSum sum_collectives(const plan::Program& program, plan::Purpose purpose, plan::CollectiveKind kind) {
  return sum_collectives(program, [&](const plan::Instruction&, const plan::Collective& c) {
    return c.purpose == purpose && c.kind == kind;
  });
}

template <class Keep>
double sum_flops(const plan::Program& program, Keep keep) {
  double sum = 0;
  for (const plan::Instruction& i : program.instructions)
    if (const auto* c = std::get_if<plan::Compute>(&i.body))
      if (keep(i)) sum += program.kernels.at(c->kernel.index()).flops.si();
  return sum;
}

inline std::string_view label_of(const plan::Program& program, const plan::Instruction& i) {
  return program.labels.at(i.label.index());
}

struct Holdings {
  std::array<std::int64_t, plan::kCategoryCount> peak{};  // each category's own
  std::array<std::int64_t, plan::kCategoryCount> end{};
  std::int64_t total_peak = 0;
  [[nodiscard]] std::int64_t peak_of(plan::Category c) const { return peak[static_cast<std::size_t>(c)]; }
  [[nodiscard]] std::int64_t end_of(plan::Category c) const { return end[static_cast<std::size_t>(c)]; }
};

// Requested bytes, in list order.
inline Holdings holdings(const plan::Program& program) {
  Holdings result;
  std::int64_t total = 0;
  for (const plan::Instruction& i : program.instructions) {
    std::int64_t sign = 0;
    plan::BufferId buffer;
    if (const auto* a = std::get_if<plan::Alloc>(&i.body)) { sign = 1; buffer = a->buffer; }
    if (const auto* f = std::get_if<plan::Free>(&i.body)) { sign = -1; buffer = f->buffer; }
    if (sign == 0) continue;
    const plan::Buffer& kind = program.buffers.at(buffer.index());
    const auto c = static_cast<std::size_t>(kind.category);
    result.end[c] += sign * kind.size.count();
    result.peak[c] = std::max(result.peak[c], result.end[c]);
    total += sign * kind.size.count();
    result.total_peak = std::max(result.total_peak, total);
  }
  return result;
}

// "F0 F1 B0 ...": the passes in the order in which compute starts them.
inline std::string pass_order(const plan::Program& program) {
  std::string text;
  std::string last;
  for (const plan::Instruction& i : program.instructions) {
    if (!std::holds_alternative<plan::Compute>(i.body) || !i.micro_batch) continue;
    const char letter = i.stage == plan::Stage::kForward ? 'F' : 'B';
    const std::string pass = letter + std::to_string(*i.micro_batch);
    if (pass == last) continue;
    text += (text.empty() ? "" : " ") + pass;
    last = pass;
  }
  return text;
}

// Most buffers of one label alive at once, where each layer of a micro-batch counts one.
inline std::int64_t most_alive(const plan::Program& program, std::string_view label) {
  std::int64_t alive = 0;
  std::int64_t most = 0;
  for (const plan::Instruction& i : program.instructions) {
    if (label_of(program, i) != label) continue;
    if (std::holds_alternative<plan::Alloc>(i.body)) most = std::max(most, ++alive);
    if (std::holds_alternative<plan::Free>(i.body)) --alive;
  }
  return most;
}

}  // namespace stepcast::test
