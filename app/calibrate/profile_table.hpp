// app/calibrate/profile_table.hpp — profiles as tables: the figures of one, and where two differ.
//
// Sigmas   |a - b| / sqrt(s_a^2 + s_b^2), s the standard deviations of profile_parameters.hpp
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/terminal.hpp"
#include "app/scenario/hardware_shelf.hpp"
#include "calibration/profile_parameters.hpp"

namespace stepcast::app {

struct ProfileView {
  std::string name;
  std::string from;                           // file, or "the profile of h100-sxm"
  std::vector<calibration::ProfileParameter> figures;
  std::map<std::string, std::string> others;  // keys that hold no figure: tiles, names, notes
};

// A file (where there is one of that name), else a profile's name, else a GPU that has its own, else a NIC's profile.
// Throws UserError, with the nearest name.
ProfileView view_profile(const HardwareShelf& shelf, const std::string& name);

std::string profile_text(const ProfileView& view, const Terminal& terminal);
std::string profile_json(const ProfileView& view);

struct FigureChange {
  std::string key;
  std::optional<calibration::ProfileParameter> before;  // absent: only the other profile has it
  std::optional<calibration::ProfileParameter> after;
  [[nodiscard]] std::optional<double> ratio() const;    // after / before
  [[nodiscard]] std::optional<double> sigmas() const;   // none: both are taken as exact
};
struct OtherChange {
  std::string key;
  std::string before;
  std::string after;
};
struct ProfileChanges {
  std::string before;
  std::string after;
  std::size_t compared = 0;
  std::vector<FigureChange> figures;  // those whose values differ, in the first profile's order
  std::vector<OtherChange> others;
};
ProfileChanges compare_profiles(const ProfileView& before, const ProfileView& after);

std::string changes_text(const ProfileChanges& changes, const Terminal& terminal);
std::string changes_json(const ProfileChanges& changes);

}  // namespace stepcast::app
