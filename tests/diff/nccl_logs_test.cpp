// The cost model of collectives against logs of nccl-tests as people post them, with the profiles as shipped. Prints the table
// log by log. Held-out logs of hardware with a profile are within 15 % in the median at 1 MiB and up, but for those named
// here with what is known of the cause (docs/guide/collectives.md); a name that has come within is to be taken off.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "app/cluster_file.hpp"
#include "app/collective_cases.hpp"
#include "app/collective_times.hpp"
#include "tests/support/shared_data.hpp"

using namespace stepcast;
using namespace stepcast::app;

TEST_SUITE_BEGIN("diff");

namespace {

constexpr double kFloor = 0.15;

const std::set<std::string> kMisses{
    "table:rtx_pro_6000_server",                    // no profile: NCCL's constants; PCIe peers
    "allreduce_2n_lambda_b200_ib_nohash",           // the network's figures are of H100 hosts
    "allreduce_2n_oci_mi300x_rccl",                 // our rings use four xGMI links of seven
    "allreduce_2n_p3dn_v100_efa100_nccl2.4",        // no profile of V100; NCCL 2.4 and the first EFA
    "allreduce_4n_a100_hdr_coreweave_v2.11",        // reaches 60 % of its NICs; the same hardware elsewhere 99 %
    "allreduce_4n_a100_hdr_sharp_coreweave_v2.13",  // the same cluster
    "allreduce_2n_dgx1_v2.0",                       // no profile: cube mesh of V100
    "allreduce_dgx2h_superpod_v2.0",                // no profile; 1,536 GPUs, errors of the log's own at 256 KiB to 2 MiB
    "allreduce_8n_v100_100g_issue78",               // no profile: a third of the one NIC's rate
    "alltoall_8n_v100_100g_emptyredop_issue78",     // the same cluster
    "allreduce_2n1g_gh200_slingshot_v2.18",         // one GPU a node: nothing hides the network
};

HardwareShelf shelf() { return load_shelf(DataFiles{.root = STEPCAST_SOURCE_DIR}); }

}  // namespace

TEST_CASE("nccl logs: forecast against measured, log by log") {
  const auto folder = test::shared_path("nccl_logs");
  if (!folder) return;
  const std::string shared = *folder + "/..";
  const HardwareShelf hardware = shelf();
  std::printf("%-11s %-8s %-52s %5s %8s %8s\n", "family", "role", "log", "rows", ">= 1 MiB", "below");
  std::vector<double> held;
  std::size_t number = 0;
  for (const CollectiveCase& one : read_cases(STEPCAST_SOURCE_DIR "/calibration/data/nccl_logs.csv")) {
    CAPTURE(one.log);
    const CasePoints points = points_of(one, shared, hardware, number++);
    std::fputs(case_line(points, points.figures).c_str(), stdout);
    REQUIRE(!points.points.empty());
    if (one.part == CasePart::kFit || one.part == CasePart::kOutlier) continue;
    const CaseErrors errors = errors_of(points, points.figures, Take::kHeld);
    held.push_back(errors.large_median);
    if (kMisses.contains(one.log)) {
      CHECK_MESSAGE(errors.large_median > kFloor, "no miss any more");
    } else {
      CHECK(errors.large_median <= kFloor);
    }
  }
  std::sort(held.begin(), held.end());
  std::printf("held out: median of %zu logs %.1f %%\n", held.size(), 100 * held[held.size() / 2]);
}

// What the fit evaluates is what the simulator plays: same times on idle links.
TEST_CASE("nccl logs: the solver's times are the cost model's") {
  const HardwareShelf hardware = shelf();
  const CollectiveMachine cluster{hardware, cluster_of_text("cluster: {nodes: 2, node: dgx-h100, fabric: {preset: rail-clos}}\n", "test")};
  for (const plan::CollectiveKind kind : {plan::CollectiveKind::kAllReduce, plan::CollectiveKind::kAllGather, plan::CollectiveKind::kAllToAll}) {
    for (const std::int32_t ranks : {2, 8, 16}) {
      const std::vector<Bytes> sizes{Bytes{1024}, Bytes{1 << 20}, Bytes{1 << 30}};
      const CollectiveJob job{.kind = kind, .ranks = ranks, .launch = {}, .issue = {}};
      const std::vector<CollectiveTime> times = time_collective(job, sizes, cluster.machine());
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        const calibration::CollectivePoint point = cluster_point(cluster, kind, ranks, times[i].size);
        const double expected = forecast_s(point, {cluster.machine().collectives, {0.0, 0.0}});
        CAPTURE(ranks);
        CAPTURE(sizes[i].count());
        CHECK(times[i].time.seconds() == doctest::Approx(expected).epsilon(1e-6));
      }
    }
  }
}

TEST_SUITE_END();
