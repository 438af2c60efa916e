#include "executor/cuda/communicators.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>
#include <variant>

#include "executor/common/part.hpp"
#include "executor/common/volumes.hpp"

namespace stepcast::executor::cuda {
namespace {

ncclDataType_t type_of(plan::Dtype dtype) {
  switch (dtype) {
    case plan::Dtype::kFp32:
    case plan::Dtype::kTf32: return ncclFloat;
    case plan::Dtype::kBf16: return ncclBfloat16;
    case plan::Dtype::kFp16: return ncclHalf;
    case plan::Dtype::kFp8: return ncclUint8;  // moved, never summed
  }
  return ncclUint8;
}

std::string name_of_members(const std::vector<RankId>& members) {
  std::string text;
  for (const RankId member : members) text += '.' + std::to_string(member.value());
  return text.size() < 120 ? text : '.' + std::to_string(members.front().value()) + ".." + std::to_string(members.back().value()) + ".of" + std::to_string(members.size());
}

}  // namespace

Communicators::Communicators(const plan::Plan& plan, RankId rank, Rendezvous& rendezvous) : plan_{plan}, rank_{rank}, rendezvous_{rendezvous} {
  const plan::PerAxis here = plan.coordinates(rank);
  const std::int32_t own_stage = here[plan::Axis::kPipeline];
  for (std::uint32_t g = 0; g < plan.groups.size(); ++g) {
    const auto& stages = plan.groups[g].stages;
    const bool part = stages.empty() || std::find(stages.begin(), stages.end(), own_stage) != stages.end();
    groups_.push_back(part ? join("group" + std::to_string(g), plan.members(plan::GroupId{g}, rank)) : Member{});
  }
  // Both ends join in the same order: by sender, then receiver.
  std::set<std::pair<std::int32_t, std::int32_t>> ways;
  for (std::size_t stage = 0; stage < plan.program_of_stage.size(); ++stage) {
    for (const plan::Instruction& i : plan.programs[plan.program_of_stage[stage].index()].instructions) {
      if (const auto* send = std::get_if<plan::Send>(&i.body)) ways.emplace(static_cast<std::int32_t>(stage), send->peer_stage);
    }
  }
  for (const auto& [from, to] : ways) {
    if (from != own_stage && to != own_stage) continue;
    const std::vector<RankId> pair{plan.peer(rank, from), plan.peer(rank, to)};
    Member member = join("messages" + std::to_string(from) + "to" + std::to_string(to), pair);
    (from == own_stage ? to_[to] : from_[from]) = std::move(member);
  }
}

Communicators::~Communicators() {
  const auto end = [](const Member& m) {
    if (m.communicator != nullptr) ncclCommDestroy(m.communicator);
  };
  for (const Member& m : groups_) end(m);
  for (const auto& [stage, m] : to_) end(m);
  for (const auto& [stage, m] : from_) end(m);
}

Communicators::Member Communicators::join(const std::string& name, const std::vector<RankId>& members) {
  Member member{.communicator = nullptr, .members = members, .slot = static_cast<std::size_t>(std::find(members.begin(), members.end(), rank_) - members.begin())};
  if (members.size() < 2) return member;
  ncclUniqueId id{};
  const std::string key = name + name_of_members(members);
  if (member.slot == 0) {
    STEPCAST_CUDA(ncclGetUniqueId(&id));
    rendezvous_.put(key, {id.internal, sizeof id.internal});
  } else {
    const std::string text = rendezvous_.get(key);
    if (text.size() != sizeof id.internal) throw SystemError("rendezvous: '" + key + "' is no NCCL id");
    std::memcpy(id.internal, text.data(), text.size());
  }
  STEPCAST_CUDA(ncclCommInitRank(&member.communicator, static_cast<int>(members.size()), id, static_cast<int>(member.slot)));
  return member;
}

void Communicators::collective(const plan::Collective& c, Reduction reduction, std::span<std::byte> buffer, std::span<std::byte> landing, cudaStream_t stream) {
  const Member& m = groups_[c.group.index()];
  const std::size_t n = m.members.size();
  if (n < 2) return;
  const auto element = static_cast<std::size_t>(plan::element_bytes(c.dtype));
  const std::size_t count = buffer.size() / element;
  const ncclRedOp_t operation = reduction == Reduction::kMost ? ncclMax : ncclSum;
  const Part own = part_of(buffer.size(), m.slot, n, element);
  const std::size_t each = count / n;
  switch (c.kind) {
    case plan::CollectiveKind::kAllReduce: STEPCAST_CUDA(ncclAllReduce(buffer.data(), buffer.data(), count, type_of(c.dtype), operation, m.communicator, stream)); break;
    case plan::CollectiveKind::kReduceScatter:
      STEPCAST_CUDA(ncclReduceScatter(buffer.data(), buffer.data() + own.begin, each, type_of(c.dtype), operation, m.communicator, stream));
      break;
    case plan::CollectiveKind::kAllGather: STEPCAST_CUDA(ncclAllGather(buffer.data() + own.begin, buffer.data(), each, type_of(c.dtype), m.communicator, stream)); break;
    case plan::CollectiveKind::kBroadcast: STEPCAST_CUDA(ncclBroadcast(buffer.data(), buffer.data(), count, type_of(c.dtype), 0, m.communicator, stream)); break;
    case plan::CollectiveKind::kSendReceive: {
      STEPCAST_CUDA(ncclGroupStart());
      STEPCAST_CUDA(ncclSend(buffer.data(), buffer.size(), ncclUint8, static_cast<int>((m.slot + 1) % n), m.communicator, stream));
      STEPCAST_CUDA(ncclRecv(landing.data(), landing.size(), ncclUint8, static_cast<int>((m.slot + n - 1) % n), m.communicator, stream));
      STEPCAST_CUDA(ncclGroupEnd());
      break;
    }
    case plan::CollectiveKind::kAllToAll: {
      std::size_t sent = 0;
      std::size_t received = 0;
      STEPCAST_CUDA(ncclGroupStart());
      for (std::size_t j = 0; j < n; ++j) {
        const Part out = place_in(buffer.size(), sent, pair_bytes(c, plan_, n, m.slot, j));
        const Part in = place_in(landing.size(), received, pair_bytes(c, plan_, n, j, m.slot));
        sent += out.end - out.begin;
        received += in.end - in.begin;
        STEPCAST_CUDA(ncclSend(buffer.data() + out.begin, out.end - out.begin, ncclUint8, static_cast<int>(j), m.communicator, stream));
        STEPCAST_CUDA(ncclRecv(landing.data() + in.begin, in.end - in.begin, ncclUint8, static_cast<int>(j), m.communicator, stream));
      }
      STEPCAST_CUDA(ncclGroupEnd());
      break;
    }
  }
}

void Communicators::send(std::int32_t to_stage, std::span<const std::byte> bytes, cudaStream_t stream) {
  STEPCAST_CUDA(ncclSend(bytes.data(), bytes.size(), ncclUint8, 1, to_.at(to_stage).communicator, stream));
}

void Communicators::receive(std::int32_t from_stage, std::span<std::byte> bytes, cudaStream_t stream) {
  STEPCAST_CUDA(ncclRecv(bytes.data(), bytes.size(), ncclUint8, 0, from_.at(from_stage).communicator, stream));
}

std::string Communicators::trouble() const {
  const auto of = [](const Member& m) -> std::string {
    ncclResult_t status = ncclSuccess;
    if (m.communicator == nullptr || ncclCommGetAsyncError(m.communicator, &status) != ncclSuccess || status == ncclSuccess || status == ncclInProgress) return {};
    return ncclGetErrorString(status);
  };
  for (const Member& m : groups_) {
    if (std::string text = of(m); !text.empty()) return text;
  }
  for (const auto& [stage, m] : to_) {
    if (std::string text = of(m); !text.empty()) return text;
  }
  for (const auto& [stage, m] : from_) {
    if (std::string text = of(m); !text.empty()) return text;
  }
  return {};
}

void Communicators::abort() {
  const auto end = [](Member& m) {
    if (m.communicator != nullptr) ncclCommAbort(std::exchange(m.communicator, nullptr));
  };
  for (Member& m : groups_) end(m);
  for (auto& [stage, m] : to_) end(m);
  for (auto& [stage, m] : from_) end(m);
}

}  // namespace stepcast::executor::cuda
