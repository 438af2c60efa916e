#include "calibration/profile.hpp"

#include <algorithm>
#include <filesystem>

#include "calibration/names.hpp"
#include "calibration/profile_check.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"
#include "sim/scenario/read.hpp"

namespace stepcast::calibration {

Profile read_profile_text(const std::string& text, const std::string& path, Diagnostics& diagnostics) {
  const std::size_t before = diagnostics.list().size();
  const auto root = scenario::parse_yaml(text, path, diagnostics);
  if (!root) return {};
  Profile profile = scenario::read_tree<Profile>(*root, diagnostics);
  if (diagnostics.list().size() == before) check_profile(profile, scenario::Positions{*root}, diagnostics);
  return profile;
}

Profile read_profile(const std::string& path) {
  Diagnostics diagnostics;
  Profile profile = read_profile_text(read_file(path), path, diagnostics);
  diagnostics.throw_if_any();
  return profile;
}

std::vector<Profile> read_profiles(const std::string& folder) {
  std::error_code ignored;
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.path().extension() == ".yaml") paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  if (paths.empty()) throw UserError("no calibration profiles (*.yaml) in " + folder);
  Diagnostics diagnostics;
  std::vector<Profile> profiles;
  for (const std::string& path : paths) profiles.push_back(read_profile_text(read_file(path), path, diagnostics));
  diagnostics.throw_if_any();
  return profiles;
}

ChosenProfile choose_profile(const std::vector<Profile>& profiles, const topology::Gpu& gpu) {
  std::vector<std::string> names{plain_name(gpu.name)};
  for (const std::string& alias : gpu.aliases) names.push_back(plain_name(alias));
  for (const Profile& profile : profiles)
    for (const std::string& name : profile.gpus)
      if (std::find(names.begin(), names.end(), plain_name(name)) != names.end()) return {profile, true};
  for (const std::string& wanted : {gpu.architecture, std::string{"any"}})
    for (const Profile& profile : profiles)
      if (std::find(profile.architectures.begin(), profile.architectures.end(), wanted) != profile.architectures.end())
        return {profile, false};
  throw UserError("no calibration profile for GPU " + gpu.name + " (architecture " + gpu.architecture + ")");
}

}  // namespace stepcast::calibration
