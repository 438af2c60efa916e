// The command `stepcast`: errors to standard error in one clear text, exit statuses as in Status.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "app/cli/command_line.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"
#include "sim/base/plain_text.hpp"

namespace {

using stepcast::app::Status;

// A broken invariant has printed itself and calls abort(): the contract's status is 3, not a signal.
extern "C" void leave_after_abort(int) { std::_Exit(static_cast<int>(Status::kInternal)); }

constexpr std::size_t kMostReported = std::size_t{1} << 20U;  // errors of a file are cut one by one

Status report(const char* prefix, const char* text, Status status) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s%s\n", prefix, stepcast::quotable(text, kMostReported).c_str());
  return status;
}

Status guarded(std::vector<std::string> arguments) {
  try {
    return stepcast::app::run_command_line(std::move(arguments));
  } catch (const stepcast::UserError& error) {
    return report("", error.what(), Status::kBadInput);
  } catch (const stepcast::SystemError& error) {
    return report("error: ", error.what(), Status::kInternal);
  } catch (const std::bad_alloc&) {
    return report("error: ", "out of memory on this machine", Status::kInternal);
  } catch (const std::exception& error) {
    return report("internal error: ", error.what(), Status::kInternal);
  }
}

}  // namespace

int main(int argc, char** argv) {
  // `stepcast ... | head` ends quietly even under a parent that ignores SIGPIPE.
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGABRT, leave_after_abort);
  Status status = guarded(std::vector<std::string>(argv + 1, argv + argc));
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (!written && status != Status::kInternal) {  // a failure is told once
    status = report("error: ", "standard output cannot be written", Status::kInternal);
  }
  return static_cast<int>(status);
}
