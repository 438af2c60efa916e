// executor/cuda/communicators.hpp — NCCL communicators of a worker: one for each group of the plan that it is part of, and one for each
// direction of messages between two stages, so that sends and receives never wait behind each other.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "executor/common/payload.hpp"
#include "executor/common/rendezvous.hpp"
#include "executor/cuda/check.hpp"
#include "sim/plan/plan.hpp"

namespace stepcast::executor::cuda {

class Communicators {
 public:
  // All workers construct it together: ids travel by the rendezvous.
  Communicators(const plan::Plan& plan, RankId rank, Rendezvous& rendezvous);
  ~Communicators();
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  // Of one collective, in place in `buffer`; `landing` takes what an all-to-all or send-receive brings.
  void collective(const plan::Collective& collective, Reduction reduction, std::span<std::byte> buffer, std::span<std::byte> landing, cudaStream_t stream);
  void send(std::int32_t to_stage, std::span<const std::byte> bytes, cudaStream_t stream);
  void receive(std::int32_t from_stage, std::span<std::byte> bytes, cudaStream_t stream);

  // What NCCL reports of any of them: empty while all is well. For somebody who waits too long.
  [[nodiscard]] std::string trouble() const;
  // Every operation gives up.
  void abort();

 private:
  struct Member {
    ncclComm_t communicator = nullptr;
    std::vector<RankId> members;
    std::size_t slot = 0;
  };
  Member join(const std::string& name, const std::vector<RankId>& members);

  const plan::Plan& plan_;
  RankId rank_;
  Rendezvous& rendezvous_;
  std::vector<Member> groups_;
  std::map<std::int32_t, Member> to_;    // stage -> messages to it
  std::map<std::int32_t, Member> from_;
};

}  // namespace stepcast::executor::cuda
