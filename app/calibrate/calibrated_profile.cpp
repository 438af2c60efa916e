#include "app/calibrate/calibrated_profile.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "calibration/profile_check.hpp"
#include "sim/base/diagnostic.hpp"

namespace stepcast::app {

namespace {

std::vector<calibration::FittedRange> ranges_of(std::span<const calibration::CollectivePoint> points, bool between_hosts) {
  std::map<std::string, calibration::FittedRange> ranges;
  for (const calibration::CollectivePoint& point : points) {
    const auto ranks = static_cast<std::int64_t>(point.layout.ranks);
    const std::string name = calibration::collective_range(point.kind, between_hosts);
    const auto [it, is_new] = ranges.try_emplace(name, calibration::FittedRange{.kernels = name, .points = 0, .least_work = {}, .most_work = {},
                                                                                .least_bytes = point.bytes, .most_bytes = point.bytes, .least_ranks = ranks, .most_ranks = ranks});
    calibration::FittedRange& range = it->second;
    ++range.points;
    range.least_bytes = std::min(*range.least_bytes, point.bytes);
    range.most_bytes = std::max(*range.most_bytes, point.bytes);
    range.least_ranks = std::min(*range.least_ranks, ranks);
    range.most_ranks = std::max(*range.most_ranks, ranks);
  }
  std::vector<calibration::FittedRange> list;
  for (const auto& [name, range] : ranges) list.push_back(range);
  return list;
}

}  // namespace

CollectiveFit fit_collectives(std::span<const CasePoints> cases, const calibration::Figures& base, const std::string& what) {
  std::vector<calibration::CollectivePoint> points;
  std::set<std::string> logs;
  for (const CasePoints& one : cases) {
    for (std::size_t i = 0; i < one.points.size(); ++i) {
      if (!one.fitted[i]) continue;
      points.push_back(one.points[i]);
      logs.insert(one.what.log + one.what.collective);
    }
  }
  if (points.empty()) throw UserError(Diagnostic{.path = "stepcast calibrate", .problem = "no log of " + what + " is to be fitted", .expected = "a row of role fit or half"});
  CollectiveFit fit;
  fit.local = points.front().layout.hosts == 1;
  fit.prior = calibration::prior_for_fit(base.parameters, points.front().layout.nvlink);
  if (!fit.local) {
    fit.prior.parameters.local = base.parameters.local;
    fit.prior = calibration::prior_of_links(fit.prior, points);
  }
  fit.fitted = fit.local ? calibration::fit_local(points, fit.prior) : calibration::fit_network(points, fit.prior);
  fit.source = fmt::format("stepcast calibrate, {}: {} points of {} log{}", what, points.size(), logs.size(), logs.size() == 1 ? "" : "s");
  fit.error = fmt::format("median |error| at 1 MiB and up: fitted {}, held out {}", medians_text(cases, fit.fitted, Take::kFitted),
                          medians_text(cases, fit.fitted, Take::kHeld));
  fit.ranges = ranges_of(points, !fit.local);
  return fit;
}

calibration::Profile with_fit(FitTarget target, const CollectiveFit& fit) {
  calibration::Profile profile = std::move(target.profile);
  std::erase_if(profile.fitted_on, [&](const calibration::FittedRange& r) { return r.kernels.ends_with(fit.local ? " inside a host" : " between hosts"); });
  profile.fitted_on.insert(profile.fitted_on.end(), fit.ranges.begin(), fit.ranges.end());
  if (fit.local) {
    profile.collectives = calibration::local_collectives(fit.fitted, fit.prior, fit.source, fit.error);
    return profile;
  }
  calibration::NetworkCollectives network = calibration::network_collectives(fit.fitted, fit.prior, fit.source, fit.error);
  network.name = target.nic;
  network.nics = {target.nic};
  network.nodes = {target.node};
  profile.network_collectives = std::move(network);
  return profile;
}

StoredCases cases_of(std::span<const StoredLog> logs, const CollectiveMachine& cluster) {
  const auto gpus = static_cast<std::int64_t>(cluster.machine().fabric.gpus.size());
  const auto of_host = static_cast<std::int64_t>(cluster.machine().fabric.gpus_per_domain());  // hosts that NVLink joins are one
  const calibration::Figures figures{cluster.machine().collectives, {cluster.launch().seconds(), cluster.issue().seconds()}};
  StoredCases cases;
  std::size_t number = 0;
  for (const StoredLog& log : logs) {
    const CollectiveCase what{.family = "db", .part = CasePart::kHalf, .log = log.name, .collective = {}, .ranks = 0, .gpus_per_process = 1, .cluster = {}, .communication = {}, .remark = {}};
    CasePoints local{.what = what, .points = {}, .fitted = {}, .figures = figures};
    CasePoints network = local;
    for (const StoredRow& row : log.rows) {
      if (row.ranks > gpus || row.ranks < 2) {
        throw UserError(Diagnostic{.path = "--cluster", .problem = fmt::format("log '{}' has {} ranks", log.name, row.ranks),
                                   .expected = fmt::format("2 to {}, the GPUs of the cluster", gpus), .hint = "name the cluster that the logs were measured on"});
      }
      CasePoints& place = row.ranks > of_host ? network : local;
      calibration::CollectivePoint point = cluster_point(cluster, row.kind, static_cast<std::int32_t>(row.ranks), row.size);
      point.log = number;
      point.gpus_per_process = row.gpus_per_process;
      point.measured_s = row.seconds;
      if (row.forced.algorithm) point.forced.algorithm = row.forced.algorithm;
      if (row.forced.protocol) point.forced.protocol = row.forced.protocol;
      place.fitted.push_back(every_other(place.points.size()));
      place.points.push_back(point);
    }
    ++number;
    if (!local.points.empty()) cases.local.push_back(std::move(local));
    if (!network.points.empty()) cases.network.push_back(std::move(network));
  }
  return cases;
}

}  // namespace stepcast::app
