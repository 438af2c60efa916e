// app/calibrate/calibrated_profile.hpp — a fit of collectives as a profile's file that commands take with --profile, and the fit of the
// logs of a database.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/measure/nccl_store.hpp"
#include "app/network/collective_cases.hpp"
#include "app/network/collective_machine.hpp"

namespace stepcast::app {

struct CollectiveFit {
  calibration::Figures prior;
  calibration::Figures fitted;
  bool local = true;            // inside a host; else between hosts
  std::string source;
  std::string error;
  std::vector<calibration::FittedRange> ranges{};  // of the fitted points
};

// Fits the cases' fitted points: those of several hosts hold the figures inside hosts as `base` has them.
// Throws UserError when there are none.
CollectiveFit fit_collectives(std::span<const CasePoints> cases, const calibration::Figures& base, const std::string& what);

// The GPU's profile with the fit in place of its figures of collectives; those between hosts for this NIC and node alone.
struct FitTarget {
  calibration::Profile profile;
  std::string nic;
  std::string node;
};
calibration::Profile with_fit(FitTarget target, const CollectiveFit& fit);

// The logs on this cluster: one case for each log and place (a host, several), every other size fitted. Throws UserError for
// a log of more ranks than the cluster has.
struct StoredCases {
  std::vector<CasePoints> local;
  std::vector<CasePoints> network;
};
StoredCases cases_of(std::span<const StoredLog> logs, const CollectiveMachine& cluster);

}  // namespace stepcast::app
