// executor/common/together.hpp — what all workers of a run do at once, whatever joins them.
#pragma once

namespace stepcast::executor {

class Together {
 public:
  Together() = default;
  Together(const Together&) = delete;
  Together& operator=(const Together&) = delete;
  virtual ~Together() = default;

  virtual void barrier() = 0;
  // Whether any worker says so. All of them ask.
  virtual bool anyone(bool says) = 0;
};

}  // namespace stepcast::executor
