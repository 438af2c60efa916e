#include "app/measure/child_process.hpp"

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

Child::Child(const ChildCall& call) : name_{call.words.front()}, pid_{::fork()} {
  if (pid_ < 0) throw SystemError(fmt::format("{}: cannot be started: {}", name_, std::strerror(errno)));
  if (pid_ == 0) become(call);
}

Child::~Child() {
  if (status_) return;
  ::kill(pid_, SIGTERM);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
}

std::optional<int> Child::poll() {
  if (status_) return status_;
  int status = 0;
  const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
  if (ended < 0 && errno != EINTR) throw SystemError(fmt::format("{}: {}", name_, std::strerror(errno)));
  if (ended != pid_) return std::nullopt;
  return take(status);
}

int Child::wait() {
  if (status_) return *status_;
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0) {
    if (errno != EINTR) throw SystemError(fmt::format("{}: {}", name_, std::strerror(errno)));
  }
  return take(status);
}

int Child::take(int status) {
  status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  if (status_ == kNotStarted) throw SystemError(fmt::format("{}: cannot be started", name_));
  return *status_;
}

bool on_path(const std::string& program) {
  const char* const path = std::getenv("PATH");
  for (const std::string& folder : split(path == nullptr ? "" : path, ':')) {
    if (!folder.empty() && ::access((folder + '/' + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

}  // namespace stepcast::app
