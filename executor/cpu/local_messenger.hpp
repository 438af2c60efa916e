// executor/cpu/local_messenger.hpp — workers that are threads of one process: tests, and plans of one worker.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>

#include "executor/cpu/messenger.hpp"

namespace stepcast::executor {

// Where the workers of one process meet.
class LocalPost {
 public:
  explicit LocalPost(std::uint32_t workers) : workers_{workers} {}

  struct Letter {
    std::span<const std::byte> bytes;
    bool taken = false;
  };
  using Address = std::tuple<RankId, RankId, Channel>;  // from, to

  void drop(const Address& address, Letter& letter);
  void wait_taken(const Letter& letter);
  void take(const Address& address, std::span<std::byte> into);
  void meet();
  void stop();

 private:
  std::uint32_t workers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Address, std::deque<Letter*>> letters_;
  std::uint32_t arrived_ = 0;
  std::uint64_t meetings_ = 0;
  bool stopped_ = false;
};

class LocalMessenger : public Messenger {
 public:
  LocalMessenger(LocalPost& post, RankId self) : post_{post}, self_{self} {}
  std::unique_ptr<Transfer> send(RankId to, Channel channel, std::span<const std::byte> bytes) override;
  std::unique_ptr<Transfer> receive(RankId from, Channel channel, std::span<std::byte> bytes) override;
  void barrier() override { post_.meet(); }
  void stop() override { post_.stop(); }

 private:
  LocalPost& post_;
  RankId self_;
};

}  // namespace stepcast::executor
