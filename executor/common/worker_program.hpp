// executor/common/worker_program.hpp — what worker programs share beside their devices: the plan that is played, facts about the run, help, errors in
// one form and the exit status.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/common/worker_options.hpp"
#include "sim/plan/plan.hpp"

namespace stepcast::executor {

struct PlayedPlan {
  std::string hash;  // of the file
  plan::Plan plan;
  std::string left_out;  // fewer_workers.hpp; empty: nothing
};

// The plan of the command line, shrunk and on fewer workers where it says so. Throws UserError where it is not for so many processes.
PlayedPlan read_played_plan(const WorkerOptions& options, std::uint32_t processes);

// Facts that every worker's records begin with.
std::vector<std::pair<std::string, std::string>> facts_of_run(const std::string& worker, std::uint32_t rank, std::uint32_t workers, const WorkerOptions& options, const PlayedPlan& played);

// Calls `work` unless help is asked for. Exit status: 0 done, 2 bad input, which rank 0 alone prints, 3 the system failed. `rank` once it is known.
int run_worker(const std::string& name, const std::vector<std::string>& arguments, const std::function<void()>& work, const std::function<std::optional<std::uint32_t>()>& rank);

// Prints the error of run_worker's status 3 and ends the process with it, destructors left out: those of communicators wait for others.
[[noreturn]] void end_at_once(const std::string& name, std::uint32_t rank, const std::string& error);

}  // namespace stepcast::executor
