// tests/support/local_workers.hpp — all workers of a plan as threads of the test's process, on the CPU backend.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "executor/cpu/cpu_device.hpp"
#include "executor/cpu/gemm.hpp"
#include "executor/cpu/local_messenger.hpp"

namespace stepcast::test {

// Calls `work` for every worker at once; throws what the first to fail threw, others that gave up with it apart.
inline void for_workers(std::int32_t workers, const std::function<void(RankId, executor::Messenger&)>& work) {
  executor::set_threads(1);  // workers are threads already
  executor::LocalPost post{static_cast<std::uint32_t>(workers)};
  std::mutex mutex;
  std::exception_ptr failure;
  std::vector<std::thread> threads;
  for (std::int32_t r = 0; r < workers; ++r) {
    threads.emplace_back([&, r] {
      const RankId rank{static_cast<std::uint32_t>(r)};
      executor::LocalMessenger messenger{post, rank};
      try {
        work(rank, messenger);
      } catch (const executor::Stopped&) {
      } catch (...) {
        post.stop();
        const std::lock_guard lock{mutex};
        if (!failure) failure = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace stepcast::test
