#include "calibration/transport_profile.hpp"

#include <algorithm>
#include <filesystem>

#include "sim/base/diagnostic.hpp"
#include "sim/scenario/read.hpp"

namespace stepcast::calibration {

std::vector<TransportProfile> read_transport_profiles(const std::string& folder) {
  std::error_code ignored;
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.path().extension() == ".yaml") paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  Diagnostics diagnostics;
  std::vector<TransportProfile> profiles;
  for (const std::string& path : paths) profiles.push_back(scenario::read_yaml_file<TransportProfile>(path, diagnostics));
  diagnostics.throw_if_any();
  return profiles;
}

const TransportProfile& transport_profile(const std::vector<TransportProfile>& profiles, const std::string& name) {
  for (const TransportProfile& profile : profiles)
    if (profile.name == name) return profile;
  throw UserError("no profile of the transport " + name + " in calibration/profiles/transport");
}

network::Framing framing_of(const TransportProfile& profile) {
  return {profile.mtu.value.si(), profile.headers_inside.value.si(), profile.headers_outside.value.si()};
}

}  // namespace stepcast::calibration
