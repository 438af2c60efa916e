// app/measure/child_process.hpp — another program, run to its end. It does not outlive this one.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace stepcast::app {

struct ChildCall {
  std::vector<std::string> words;                              // the program (searched in PATH) and its arguments
  std::vector<std::pair<std::string, std::string>> environment;  // added to this process's
};

// Its output is this program's. Throws SystemError where it cannot be started.
class Child {
 public:
  explicit Child(const ChildCall& call);
  ~Child();  // ends it, if it still runs
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Its exit status once it has ended; 128 + n where signal n ended it.
  std::optional<int> poll();
  int wait();

 private:
  int take(int status);
  std::string name_;
  int pid_ = 0;
  std::optional<int> status_;
};

// Whether PATH has a program of that name.
bool on_path(const std::string& program);

}  // namespace stepcast::app
