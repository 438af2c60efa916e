// app/validate/parallel_rows.hpp — the same work for each of n rows, several at a time. Results go to places of their own, so that the number of
// threads changes nothing; the first failure is thrown once all threads have stopped.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace stepcast::app {

template <class Work>
void in_parallel(std::size_t n, unsigned threads, Work work) {
  std::atomic<std::size_t> next{0};
  std::mutex failing;
  std::exception_ptr failure;
  const auto take = [&] {
    for (std::size_t i = next++; i < n; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::scoped_lock lock{failing};
        if (!failure) failure = std::current_exception();
        next = n;
        return;
      }
    }
  };
  std::vector<std::jthread> pool;
  for (unsigned t = 1; t < std::max(1U, threads); ++t) pool.emplace_back(take);
  take();
  pool.clear();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace stepcast::app
