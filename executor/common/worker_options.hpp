// executor/common/worker_options.hpp — the command line that all workers share: stepcast-cpu, stepcast-cuda. No library: a worker is
// copied to machines that have none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/units.hpp"

namespace stepcast::executor {

struct WorkerOptions {
  std::string plan;
  std::string records;            // file name; the rank and ".records" are put behind it
  std::int64_t warmup = 1;        // steps before those that are recorded
  std::int64_t steps = 3;
  std::int64_t threads = 1;       // of matrix products and host Adam
  std::int64_t seed = 1;
  std::int64_t shrink = 1;        // executor/common/shrink.hpp
  bool train = false;             // a model that learns instead of random data
  bool fewer = false;             // more workers in the plan than processes: its distinct programs (fewer_workers.hpp)
  bool share_gpu = false;         // cuda: ranks on one GPU, each as if on a host of its own
  std::string rendezvous;         // cuda: where NCCL's ids are exchanged
  bool measure = false;           // instructions are points, each for itself
  double point_budget_s = 1.0;    // of a point
  std::int64_t timeout_s = 60;    // without the end of a step
  Bytes memory{std::int64_t{1} << 40};
};

// Throws UserError. `name` is the program's.
WorkerOptions parse_worker_options(const std::string& name, const std::vector<std::string>& arguments);
std::string worker_usage(const std::string& name);

}  // namespace stepcast::executor
