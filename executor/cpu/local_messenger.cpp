#include "executor/cpu/local_messenger.hpp"

#include <algorithm>

#include "sim/base/check.hpp"

namespace stepcast::executor {
namespace {

class Sending : public Transfer {
 public:
  Sending(LocalPost& post, const LocalPost::Address& address, std::span<const std::byte> bytes) : post_{post}, letter_{.bytes = bytes} {
    post_.drop(address, letter_);
  }
  void wait() override { post_.wait_taken(letter_); }

 private:
  LocalPost& post_;
  LocalPost::Letter letter_;
};

class Receiving : public Transfer {
 public:
  Receiving(LocalPost& post, const LocalPost::Address& address, std::span<std::byte> into) : post_{post}, address_{address}, into_{into} {}
  void wait() override { post_.take(address_, into_); }

 private:
  LocalPost& post_;
  LocalPost::Address address_;
  std::span<std::byte> into_;
};

}  // namespace

void LocalPost::drop(const Address& address, Letter& letter) {
  const std::lock_guard lock{mutex_};
  letters_[address].push_back(&letter);
  changed_.notify_all();
}

void LocalPost::wait_taken(const Letter& letter) {
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [&] { return letter.taken || stopped_; });
  if (!letter.taken) throw Stopped{};
}

void LocalPost::take(const Address& address, std::span<std::byte> into) {
  std::unique_lock lock{mutex_};
  std::deque<Letter*>& box = letters_[address];
  changed_.wait(lock, [&] { return !box.empty() || stopped_; });
  if (stopped_) throw Stopped{};  // senders may have gone, and their letters with them
  Letter& letter = *box.front();
  box.pop_front();
  SIM_CHECK(letter.bytes.size() == into.size(), letter.bytes.size(), into.size());
  std::copy(letter.bytes.begin(), letter.bytes.end(), into.begin());
  letter.taken = true;
  changed_.notify_all();
}

void LocalPost::meet() {
  std::unique_lock lock{mutex_};
  const std::uint64_t meeting = meetings_;
  if (++arrived_ == workers_) {
    arrived_ = 0;
    ++meetings_;
    changed_.notify_all();
    return;
  }
  changed_.wait(lock, [&] { return meetings_ != meeting || stopped_; });
  if (meetings_ == meeting) throw Stopped{};
}

void LocalPost::stop() {
  const std::lock_guard lock{mutex_};
  stopped_ = true;
  changed_.notify_all();
}

std::unique_ptr<Transfer> LocalMessenger::send(RankId to, Channel channel, std::span<const std::byte> bytes) {
  return std::make_unique<Sending>(post_, LocalPost::Address{self_, to, channel}, bytes);
}

std::unique_ptr<Transfer> LocalMessenger::receive(RankId from, Channel channel, std::span<std::byte> bytes) {
  return std::make_unique<Receiving>(post_, LocalPost::Address{from, self_, channel}, bytes);
}

}  // namespace stepcast::executor
