// calibration/collective_fit.hpp — a few physical figures of collectives out of measured times.
//
// Model    Least sum over logs of the mean |ln(forecast / measured)| of a log's points, beyond 0.7 at a tenth so that a stray
//          point cannot bend the fit, plus 0.002 times the squared log distance of each figure from its prior: figures
//          that the points do not tell stay where NCCL's constants put them.                    (1)
//          Search: one figure at a time, steps of 10 down to 1.01, until nothing improves. No randomness.
// Cost     O(figures * steps * points)
// Ignores  correlation of the figures; what is not in models/collective/cost.hpp
// Tests    unit/collective_fit_test (recovers figures it was shown), diff/nccl_logs_test (held-out logs)
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "calibration/collective_profile.hpp"
#include "models/collective/cost.hpp"

namespace stepcast::calibration {

struct CollectivePoint {
  std::size_t log = 0;                 // points of one log share a number
  plan::CollectiveKind kind = plan::CollectiveKind::kAllReduce;
  Bytes bytes;
  collective::Layout layout;
  collective::IdleRates idle{};        // of the catalogue's links
  bool infiniband = false;             // between its hosts: NCCL's own latencies are of such networks
  collective::Forced forced{};         // what the cluster's user fixed
  std::int64_t gpus_per_process = 1;   // 0: a graph issues the call, the host's time does not show
  double measured_s = 0.0;
};

struct HostCost {
  double launch_s = 5e-6;              // of a call
  double issue_s = 0.3e-6;             // of a send or receive in a group
};

struct Figures {
  collective::Parameters parameters;
  HostCost host;
};

// A call on idle links, or what its process needs to issue it for all of its GPUs, if that is more.
double forecast_s(const CollectivePoint& point, const Figures& figures);

// (forecast / measured - 1).
double relative_error(const CollectivePoint& point, const Figures& figures);

// Figures inside a host, from points of one host; and of the network, from points of several, those inside held.
Figures fit_local(std::span<const CollectivePoint> points, Figures prior);
Figures fit_network(std::span<const CollectivePoint> points, Figures prior);

// Priors that NCCL has no constant for: the pipeline's fill (16 channels of 512 KiB), ceilings between hosts; without NVLink,
// NCCL's steps over PCIe, and the ceiling of a pair of GPUs, two channels' worth.
Figures prior_for_fit(collective::Parameters parameters, bool nvlink = true);
// Between hosts: with LL's ceiling where the links of a ring have theirs, if that is lower. Above it a search finds no slope.
Figures prior_of_links(Figures prior, std::span<const CollectivePoint> points);

// The same as a profile holds them.
LocalCollectives local_collectives(const Figures& figures, const Figures& prior, const std::string& source, const std::string& error);
NetworkCollectives network_collectives(const Figures& figures, const Figures& prior, const std::string& source, const std::string& error);

// Sections of a profile's file, with unit and source; the error's text is the caller's.
std::string local_yaml(const Figures& figures, const Figures& prior, const std::string& source, const std::string& error);
std::string network_yaml(const Figures& figures, const Figures& prior, const std::string& source, const std::string& error);

}  // namespace stepcast::calibration
