// The fit finds figures that it was shown, and leaves alone what the points do not tell.
#include <doctest/doctest.h>

#include <cmath>

#include "calibration/collective_fit.hpp"
#include "models/collective/nccl_constants.hpp"

using namespace stepcast;
using namespace stepcast::calibration;
using plan::CollectiveKind;

TEST_SUITE_BEGIN("unit");

namespace {

std::vector<CollectivePoint> points(const collective::Layout& layout, double ring, double tree, const Figures& truth) {
  std::vector<CollectivePoint> out;
  for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllGather}) {
    for (std::int64_t bytes = 8; bytes <= std::int64_t{1} << 33; bytes *= 2) {
      CollectivePoint point{.log = static_cast<std::size_t>(kind), .kind = kind, .bytes = Bytes{bytes}, .layout = layout};
      point.idle[static_cast<std::size_t>(collective::Algorithm::kRing)] = {ring, 240e9};
      point.idle[static_cast<std::size_t>(collective::Algorithm::kTree)] = {tree, 130e9};
      point.measured_s = forecast_s(point, truth);
      out.push_back(point);
    }
  }
  return out;
}

double worst(const std::vector<CollectivePoint>& points, const Figures& figures) {
  double error = 0.0;
  for (const CollectivePoint& point : points) error = std::max(error, std::abs(relative_error(point, figures)));
  return error;
}

}  // namespace

TEST_CASE("collective fit: figures inside a host") {
  const collective::Layout node{.ranks = 8, .hosts = 1};
  const Figures prior = prior_for_fit(collective::nccl_constants(collective::Generation::kAmpere));
  Figures truth = prior;
  truth.parameters.local.ring_base_s[0] = 9.5e-6;
  truth.parameters.local.efficiency[2] = 0.9;
  truth.parameters.local.fill.bytes = 12e6;
  const auto shown = points(node, 240e9, 0.0, truth);
  CHECK(worst(shown, prior) > 0.05);
  const Figures found = fit_local(shown, prior);
  CHECK(worst(shown, found) < 0.05);
  CHECK(found.parameters.local.efficiency[2] == doctest::Approx(0.9).epsilon(0.02));
  CHECK(found.parameters.local.nvls_s == prior.parameters.local.nvls_s);
  CHECK(local_yaml(found, prior, "here", "none").find("nvls_base: {value: 25 us, basis: assumed") != std::string::npos);
  CHECK(local_yaml(found, prior, "here", "none").find("ll_base: {value: 9.") != std::string::npos);
}

TEST_CASE("collective fit: a slow network's latency, a hundred times the prior") {
  const collective::Layout cluster{.ranks = 16, .hosts = 2};
  const Figures prior = prior_for_fit(collective::nccl_constants(collective::Generation::kAmpere));
  Figures truth = prior;
  truth.parameters.network.latency_s = 100e-6;
  const auto shown = points(cluster, 90e9, 45e9, truth);
  CHECK(worst(shown, prior) > 0.5);
  const Figures found = fit_network(shown, prior);
  CHECK(found.parameters.network.latency_s == doctest::Approx(100e-6).epsilon(0.05));
  CHECK(worst(shown, found) < 0.05);
  CHECK(found.parameters.local.ring_base_s == prior.parameters.local.ring_base_s);
}

// A process of 8 GPUs at 5 us a call: 40 us, whatever the message, until the links take longer.
TEST_CASE("collective fit: the host bounds small calls of one process, not those of a graph") {
  Figures figures = prior_for_fit(collective::nccl_constants(collective::Generation::kAmpere));
  CollectivePoint point = points({.ranks = 8, .hosts = 1}, 240e9, 0.0, figures).front();
  point.gpus_per_process = 8;
  CHECK(forecast_s(point, figures) == doctest::Approx(40e-6));
  point.gpus_per_process = 0;
  CHECK(forecast_s(point, figures) == doctest::Approx(6.6e-6 + 14 * 0.6e-6));
}

TEST_SUITE_END();
