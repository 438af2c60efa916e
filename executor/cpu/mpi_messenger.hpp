// executor/cpu/mpi_messenger.hpp — workers that are processes of an MPI job. Waiting gives its core away: ranks may be more than cores.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include <mpi.h>

#include "executor/cpu/messenger.hpp"

namespace stepcast::executor {

// MPI begun and ended, with threads that may all call it.
class MpiSession {
 public:
  // Throws SystemError where the library cannot serve several threads.
  MpiSession();
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  [[nodiscard]] std::uint32_t rank() const { return rank_; }
  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] std::string library() const;  // "Open MPI v4.1.4"
  // Nanoseconds to add to this process's steady clock for that of rank 0: 0 on the same machine, else from the shortest of some
  // round trips (Cristian 1989), good to half of that. All ranks call it.
  [[nodiscard]] std::int64_t clock_offset_ns() const;
  // Ends all processes of the job.
  [[noreturn]] void abort(int status) const;

 private:
  std::uint32_t rank_ = 0;
  std::uint32_t size_ = 1;
};

class MpiMessenger : public Messenger {
 public:
  // `spaces`: of channels, groups and one. All ranks construct it together.
  explicit MpiMessenger(std::size_t spaces);
  ~MpiMessenger() override;
  std::unique_ptr<Transfer> send(RankId to, Channel channel, std::span<const std::byte> bytes) override;
  std::unique_ptr<Transfer> receive(RankId from, Channel channel, std::span<std::byte> bytes) override;
  void barrier() override;
  void stop() override { stopped_ = true; }

 private:
  std::vector<MPI_Comm> spaces_;
  int most_tags_ = 32767;
  std::atomic<bool> stopped_{false};
};

}  // namespace stepcast::executor
