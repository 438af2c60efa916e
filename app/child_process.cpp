#include "app/child_process.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "sim/base/file.hpp"
#include "sim/base/text.hpp"

namespace stepcast::app {
namespace {

constexpr int kNotStarted = 127;

[[noreturn]] void become(const ChildCall& call) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  for (const auto& [key, value] : call.environment) ::setenv(key.c_str(), value.c_str(), 1);
  std::vector<char*> words;
  for (const std::string& word : call.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words.front(), words.data());
  ::_exit(kNotStarted);
}

}  // namespace

int run_child(const ChildCall& call) {
  const pid_t child = ::fork();
  if (child < 0) throw SystemError(fmt::format("{}: cannot be started: {}", call.words.front(), std::strerror(errno)));
  if (child == 0) become(call);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) throw SystemError(fmt::format("{}: {}", call.words.front(), std::strerror(errno)));
  }
  if (WIFSIGNALED(status)) return 128 + WTERMSIG(status);
  if (WEXITSTATUS(status) == kNotStarted) throw SystemError(fmt::format("{}: cannot be started", call.words.front()));
  return WEXITSTATUS(status);
}

bool on_path(const std::string& program) {
  const char* const path = std::getenv("PATH");
  for (const std::string& folder : split(path == nullptr ? "" : path, ':')) {
    if (!folder.empty() && ::access((folder + '/' + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

}  // namespace stepcast::app
