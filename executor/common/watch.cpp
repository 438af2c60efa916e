#include "executor/common/watch.hpp"

#include <iostream>
#include <utility>

namespace stepcast::executor {

Watch::Watch(std::string who, std::chrono::seconds limit, std::function<std::vector<std::string>()> standing, std::function<void()> end)
    : who_{std::move(who)}, limit_{limit}, standing_{std::move(standing)}, end_{std::move(end)}, thread_{[this] { run(); }} {}

Watch::~Watch() {
  {
    const std::lock_guard lock{mutex_};
    over_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Watch::step_ended() {
  const std::lock_guard lock{mutex_};
  ++steps_;
  changed_.notify_all();
}

void Watch::run() {
  std::unique_lock lock{mutex_};
  while (!over_) {
    const std::uint64_t seen = steps_;
    if (changed_.wait_for(lock, limit_, [&] { return over_ || steps_ != seen; })) continue;
    std::string text = who_ + ": no step has ended for " + std::to_string(limit_.count()) + " s\n";
    for (const std::string& stream : standing_()) text += "  " + stream + '\n';
    std::cerr << text << std::flush;
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::seconds{1});  // the others say the same about themselves before the job ends
    end_();
    lock.lock();
  }
}

}  // namespace stepcast::executor
