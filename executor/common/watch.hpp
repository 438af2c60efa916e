// executor/common/watch.hpp — a run that stands still is ended: where no step has ended for too long, each worker says what each of its
// streams is at, and the job ends.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace stepcast::executor {

class Watch {
 public:
  // `standing` and `end` are called from another thread; `end` does not return.
  Watch(std::string who, std::chrono::seconds limit, std::function<std::vector<std::string>()> standing, std::function<void()> end);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  void step_ended();

 private:
  void run();

  std::string who_;
  std::chrono::seconds limit_;
  std::function<std::vector<std::string>()> standing_;
  std::function<void()> end_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t steps_ = 0;
  bool over_ = false;
  std::thread thread_;  // last
};

}  // namespace stepcast::executor
