#include "executor/common/worker_options.hpp"

#include <charconv>
#include <limits>

#include "executor/common/shrink.hpp"
#include "sim/base/diagnostic.hpp"

namespace stepcast::executor {
namespace {

std::int64_t whole(const std::string& option, const std::string& text, std::int64_t least, std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most) {
    throw UserError(Diagnostic{.path = option, .problem = "not understood", .expected = "a whole number, " + std::to_string(least) + (most == std::numeric_limits<std::int64_t>::max() ? " or more" : " to " + std::to_string(most)), .got = text});
  }
  return value;
}

}  // namespace

std::string worker_usage(const std::string& name) {
  return "usage: " + name + " PLAN [OPTION...]\n\n"
         "plays a plan file, one process a worker, under mpirun or srun.\n\n"
         "      --records NAME   write what was measured to NAME.<rank>.records (default: beside the plan)\n"
         "      --warmup N       steps before those that are recorded (default 1)\n"
         "      --steps N        steps that are recorded (default 3)\n"
         "      --threads N      cores of a matrix product (CPUs) and of host Adam (default 1)\n"
         "      --memory BYTES   refuse to hold more\n"
         "      --seed N         of random data (default 1)\n"
         "      --shrink N       sides of matrices divided by N, bytes by its square: a big plan on a small machine\n"
         "      --train          a model that learns instead of random data: the plan's operators compute what they are called\n"
         "      --measure MS     the plan's instructions are points: each is repeated until its median is known, at most MS long\n"
         "      --fewer          a plan of more workers than processes: its distinct programs, one worker each\n"
         "      --share-gpu      cuda: several ranks on one GPU, talking over sockets as hosts do\n"
         "      --rendezvous A   cuda: file:FOLDER or tcp:HOST:PORT of rank 0 (default: MASTER_ADDR and MASTER_PORT, else beside the records)\n"
         "      --timeout S      give up where a step takes longer (default 60)\n"
         "  -h, --help           this text\n";
}

WorkerOptions parse_worker_options(const std::string& name, const std::vector<std::string>& arguments) {
  WorkerOptions options;
  const auto value = [&](std::size_t& i) {
    if (i + 1 == arguments.size()) throw UserError(Diagnostic{.path = arguments[i], .problem = "no value behind it"});
    return arguments[++i];
  };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--records") {
      options.records = value(i);
    } else if (word == "--train") {
      options.train = true;
    } else if (word == "--fewer") {
      options.fewer = true;
    } else if (word == "--share-gpu") {
      options.share_gpu = true;
    } else if (word == "--rendezvous") {
      options.rendezvous = value(i);
    } else if (word == "--measure") {
      options.measure = true;
      options.point_budget_s = static_cast<double>(whole(word, value(i), 1)) * 1e-3;
    } else if (word == "--warmup") {
      options.warmup = whole(word, value(i), 0);
    } else if (word == "--steps") {
      options.steps = whole(word, value(i), 1);
    } else if (word == "--threads") {
      options.threads = whole(word, value(i), 1);
    } else if (word == "--seed") {
      options.seed = whole(word, value(i), 0);
    } else if (word == "--shrink") {
      options.shrink = whole(word, value(i), 1, kMostShrink);
    } else if (word == "--timeout") {
      options.timeout_s = whole(word, value(i), 1);
    } else if (word == "--memory") {
      options.memory = Bytes{whole(word, value(i), 1)};
    } else if (!word.starts_with("-") && options.plan.empty()) {
      options.plan = word;
    } else {
      throw UserError(Diagnostic{.path = name, .problem = "'" + word + "' is not understood", .hint = name + " --help lists the options"});
    }
  }
  if (options.plan.empty()) throw UserError(Diagnostic{.path = name, .problem = "no plan", .expected = "a plan file, as `stepcast plan --save` writes it"});
  if (options.records.empty()) options.records = options.plan;
  return options;
}

}  // namespace stepcast::executor
