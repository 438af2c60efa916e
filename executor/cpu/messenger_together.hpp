// executor/cpu/messenger_together.hpp — workers that a Messenger joins, as one.
#pragma once

#include <array>
#include <vector>

#include "executor/common/together.hpp"
#include "executor/cpu/collectives.hpp"

namespace stepcast::executor {

class MessengerTogether : public Together {
 public:
  MessengerTogether(Messenger& messenger, RankId rank, std::uint32_t workers) : messenger_{messenger}, rank_{rank} {
    for (std::uint32_t r = 0; r < workers; ++r) members_.emplace_back(r);
  }
  void barrier() override { messenger_.barrier(); }
  bool anyone(bool says) override {
    if (members_.size() < 2) return says;
    constexpr Channel kOwn{0, 31'999};  // beyond the messages of any plan's step
    std::vector<std::byte> scratch;
    std::array<float, 1> flag{says ? 1.0F : 0.0F};
    all_reduce({messenger_, kOwn, members_, rank_.index(), scratch, Reduction::kMost}, plan::Dtype::kFp32, std::as_writable_bytes(std::span{flag}));
    return flag[0] > 0.0F;
  }

 private:
  Messenger& messenger_;
  RankId rank_;
  std::vector<RankId> members_;
};

}  // namespace stepcast::executor
