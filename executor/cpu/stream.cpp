#include "executor/cpu/stream.hpp"

#include <utility>

namespace stepcast::executor {

Stream::Stream() : thread_{[this] { run(); }} {}

Stream::~Stream() {
  {
    const std::lock_guard lock{mutex_};
    ends_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Stream::push(std::function<void()> work) {
  const std::lock_guard lock{mutex_};
  queue_.push_back(std::move(work));
  changed_.notify_all();
}

void Stream::drain() {
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [this] { return queue_.empty() && !busy_; });
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Stream::run() {
  std::unique_lock lock{mutex_};
  while (true) {
    changed_.wait(lock, [this] { return ends_ || !queue_.empty(); });
    if (ends_) return;
    const std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    if (failure_) {
      changed_.notify_all();
      continue;
    }
    busy_ = true;
    lock.unlock();
    std::exception_ptr failure;
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    busy_ = false;
    if (failure) failure_ = failure;
    changed_.notify_all();
  }
}

void Event::reset() {
  const std::lock_guard lock{mutex_};
  set_ = false;
}

void Event::set() {
  const std::lock_guard lock{mutex_};
  set_ = true;
  changed_.notify_all();
}

bool Event::wait() {
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [this] { return set_ || stopped_; });
  return set_;
}

void Event::stop() {
  const std::lock_guard lock{mutex_};
  stopped_ = true;
  changed_.notify_all();
}

}  // namespace stepcast::executor
