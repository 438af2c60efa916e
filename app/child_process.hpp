// app/child_process.hpp — another program, run to its end. It does not outlive this one.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace stepcast::app {

struct ChildCall {
  std::vector<std::string> words;                              // the program (searched in PATH) and its arguments
  std::vector<std::pair<std::string, std::string>> environment;  // added to this process's
};

// Its exit status; 128 + n where signal n ended it. Its output is this program's. Throws SystemError where it cannot be started.
int run_child(const ChildCall& call);

// Whether PATH has a program of that name.
bool on_path(const std::string& program);

}  // namespace stepcast::app
