// `stepcast profile`: the figures of a calibration profile, and where two profiles differ.
#include "app/calibrate/profile_table.hpp"
#include "app/commands/commands.hpp"
#include "app/commands/common_options.hpp"
#include "sim/base/diagnostic.hpp"

namespace stepcast::app {
namespace {

OptionList profile_options() {
  OptionList options;
  add_output_options(options);
  return options;
}

Status profile(const Invocation& invocation, Session& session) {
  const std::string& what = invocation.operands.front();
  const std::size_t wanted = what == "show" ? 2 : what == "diff" ? 3 : 0;
  if (invocation.operands.size() != wanted) {
    throw UserError(Diagnostic{.path = "stepcast profile", .problem = wanted == 0 ? "unknown word" : "wrong number of profiles", .expected = "show NAME, or diff NAME NAME", .got = what});
  }
  const HardwareShelf shelf = load_shelf(session.data);
  const ProfileView first = view_profile(shelf, invocation.operands[1]);
  if (what == "show") {
    write_json(invocation, profile_json(first));
    print_text(invocation, profile_text(first, session.terminal));
    return Status::kDone;
  }
  const ProfileChanges changes = compare_profiles(first, view_profile(shelf, invocation.operands[2]));
  write_json(invocation, changes_json(changes));
  print_text(invocation, changes_text(changes, session.terminal));
  return Status::kDone;
}

}  // namespace

Command profile_command() {
  return {.name = "profile",
          .summary = "the figures of a calibration profile; where two differ",
          .operands = {.usage = "show NAME | diff NAME NAME", .min = 1, .max = 3},
          .details = "NAME is a profile's file, the name of a shipped profile (h100), of a GPU (h100-sxm) or of a network card (ib-ndr-400). show: each figure with "
                     "its unit, standard deviation, kind of evidence, source and day. diff: figures whose values differ, their ratio, and the difference "
                     "over both standard deviations together.",
          .options = profile_options(),
          .run = profile};
}

}  // namespace stepcast::app
