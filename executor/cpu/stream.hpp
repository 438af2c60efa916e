// executor/cpu/stream.hpp — work in order, beside other streams: a thread with a queue.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace stepcast::executor {

class Stream {
 public:
  Stream();
  ~Stream();  // after what runs; what is queued is dropped
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void push(std::function<void()> work);
  // Waits for all that was pushed. After the first exception the rest is dropped; it is thrown here, once.
  void drain();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool busy_ = false;
  bool ends_ = false;
  std::exception_ptr failure_;
  std::thread thread_;  // last: everything above exists when it starts
};

// What Record marks and Wait waits for, within a step.
class Event {
 public:
  void reset();
  void set();
  // False: gave up, because stop() was called.
  bool wait();
  void stop();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
  bool stopped_ = false;
};

}  // namespace stepcast::executor
