// app/scenario/evidence.hpp — counts what kind of evidence the figures behind a forecast rest on, through the
// same key lists that read them.
#pragma once

#include "app/forecast/forecast.hpp"
#include "calibration/profile.hpp"
#include "topologies/generate.hpp"

namespace stepcast::app {

// The GPU's, node's and NIC's catalogue figures and the profile's; rates of number formats that the
// scenario does not use are left out, and the NIC's when there is no network.
Evidence count_evidence(const topology::ClusterHardware& hardware, const calibration::ChosenProfile& profile,
                        const std::string& rate_key, bool network);

}  // namespace stepcast::app
