// Four hosts as network namespaces below leaf and spine routers, and a plan run on them. Root only; skipped, saying so, elsewhere.
#include <doctest/doctest.h>

#include <unistd.h>

#include <cstdlib>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/support/mpi.hpp"
#include "tests/support/program.hpp"
#include "tests/support/source_dir.hpp"

using stepcast::test::has_mpi;
using stepcast::test::Outcome;
using stepcast::test::run_stepcast;

TEST_SUITE_BEGIN("e2e");

namespace {

const std::string kScript = STEPCAST_SOURCE_DIR "/scripts/netcluster.sh";
const std::string kScenario = STEPCAST_SOURCE_DIR "/configs/executor/tiny-4-workers.yaml";

// A cluster of its own name, taken down at the end.
class Cluster {
 public:
  explicit Cluster(const std::string& options) {
    ::setenv("NETCLUSTER", "sctest", 1);
    up_ = std::system((kScript + " up --for 300 " + options + " > /dev/null 2>&1").c_str()) == 0;
    if (!up_) MESSAGE("skipped: namespaces cannot be made here (root, iproute2 and veth are needed)");
  }
  ~Cluster() {
    if (up_) CHECK(std::system((kScript + " down").c_str()) == 0);
  }
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;
  [[nodiscard]] bool up() const { return up_; }

 private:
  bool up_ = false;
};

nlohmann::json run_on_cluster(const std::string& options) {
  const Outcome outcome = run_stepcast("run " + kScenario + " --json - --launcher '" + kScript + " run' " + options);
  REQUIRE_MESSAGE(outcome.status == 0, outcome.err);
  return nlohmann::json::parse(outcome.out);
}

}  // namespace

TEST_CASE("netcluster: a plan on four namespace hosts learns what one worker learns, over real routes") {
  if (!has_mpi()) return;
  const Cluster cluster{"--hosts 4 --leaves 2 --spines 2 --rate 200mbit --uplink 100mbit"};
  if (!cluster.up()) return;
  const auto four = run_on_cluster("--train --steps 3 --warmup 0");
  const Outcome alone = run_stepcast("run " + kScenario + " --train --steps 3 --warmup 0 --json - --set parallel.tp=1 --set parallel.pp=1 --set parallel.zero=0 "
                                     "--set cluster.gpus_per_node=1");
  REQUIRE_MESSAGE(alone.status == 0, alone.err);
  const auto one = nlohmann::json::parse(alone.out);
  for (std::size_t step = 0; step < 3; ++step) CHECK(four["losses"][step].get<double>() == doctest::Approx(one["losses"][step].get<double>()).epsilon(1e-4));
}

TEST_CASE("netcluster: bad options are told before anything is made") {
  for (const char* options : {"up --hosts 0", "up --leaves 2", "up --hosts 3 --leaves 2 --spines 1", "up --rate", "sideways"}) {
    CAPTURE(options);
    CHECK(WEXITSTATUS(std::system((kScript + " " + options + " > /dev/null 2>&1").c_str())) == 2);
  }
}
