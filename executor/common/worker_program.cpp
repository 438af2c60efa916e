#include "executor/common/worker_program.hpp"

#include <cstdlib>
#include <iostream>

#include "executor/common/fewer_workers.hpp"
#include "executor/common/machine_facts.hpp"
#include "executor/common/shrink.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"
#include "sim/plan/plan_file.hpp"

namespace stepcast::executor {

PlayedPlan read_played_plan(const WorkerOptions& options, std::uint32_t processes) {
  const std::string text = read_file(options.plan);
  PlayedPlan played{.hash = text_hash(text), .plan = shrink(plan::from_file_text(text, options.plan), options.shrink), .left_out = {}};
  if (options.fewer) {
    FewerWorkers fewer = on_fewer(played.plan, static_cast<std::int32_t>(processes));
    played.plan = std::move(fewer.plan);
    played.left_out = std::move(fewer.note);
  }
  if (static_cast<std::uint32_t>(played.plan.world_size()) != processes) {
    throw UserError(Diagnostic{.where = {options.plan, 0, 0}, .problem = "another number of workers than processes",
                               .expected = std::to_string(played.plan.world_size()) + " processes (mpirun -n, srun -n, torchrun --nproc-per-node)", .got = std::to_string(processes)});
  }
  return played;
}

std::vector<std::pair<std::string, std::string>> facts_of_run(const std::string& worker, std::uint32_t rank, std::uint32_t workers, const WorkerOptions& options, const PlayedPlan& played) {
  std::vector<std::pair<std::string, std::string>> facts{{"worker", worker},
                                                         {"rank", std::to_string(rank)},
                                                         {"workers", std::to_string(workers)},
                                                         {"plan", played.hash},
                                                         {"data", options.train ? "a model that learns" : "random"},
                                                         {"shrink", std::to_string(options.shrink)}};
  if (!played.left_out.empty()) facts.emplace_back("fewer", played.left_out);
  for (auto& fact : machine_facts()) facts.push_back(std::move(fact));
  return facts;
}

namespace {

void print_failure(const std::string& name, std::optional<std::uint32_t> rank, const std::string& error) {
  std::cerr << name + ": " + (rank ? "rank " + std::to_string(*rank) + ": " : std::string{}) + error + '\n' << std::flush;
}

}  // namespace

void end_at_once(const std::string& name, std::uint32_t rank, const std::string& error) {
  print_failure(name, rank, error);
  std::_Exit(3);
}

int run_worker(const std::string& name, const std::vector<std::string>& arguments, const std::function<void()>& work, const std::function<std::optional<std::uint32_t>()>& rank) {
  for (const std::string& word : arguments) {
    if (word == "-h" || word == "--help") {
      std::cout << worker_usage(name);
      return 0;
    }
  }
  try {
    work();
    return 0;
  } catch (const UserError& error) {
    if (rank().value_or(0) == 0) std::cerr << error.what() << std::endl;
    return 2;
  } catch (const std::exception& error) {
    print_failure(name, rank(), error.what());
    return 3;
  }
}

}  // namespace stepcast::executor
