// executor/cuda/cudnn/graph.hpp — an operation graph of cuDNN, built operation by operation, and the plan that an engine of the library makes of it.
//
// Tensors are numbered in the order in which they are made; those between operations are never stored ("virtual"). Computation is in fp32. Where the
// library has no engine for a graph, Refused says so in its own words.
#pragma once

#include <array>
#include <initializer_list>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "executor/cuda/cudnn/api.hpp"

namespace stepcast::executor::cudnn {

class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A descriptor of the library, destroyed with the object.
class Owned {
 public:
  Owned(const Api& api, Kind kind);
  ~Owned();
  Owned(Owned&& other) noexcept;
  Owned& operator=(Owned&&) = delete;

  [[nodiscard]] Descriptor get() const { return descriptor_; }
  template <class T>
  void set(Attribute attribute, Type type, const T& value) {
    set_many(attribute, type, 1, &value);
  }
  void set_descriptor(Attribute attribute, const Owned& value) { set(attribute, Type::kDescriptor, value.descriptor_); }
  void set_many(Attribute attribute, Type type, std::int64_t count, const void* elements);
  void finalize(const char* what);

 private:
  const Api* api_;
  Descriptor descriptor_ = nullptr;
};

// The GPU that a plan is for: of a handle, or only described, to ask what the library would do there.
struct Target {
  Handle handle = nullptr;
  Descriptor properties = nullptr;
};

// A GPU described by the library's own JSON (cuDNN 9.8 and later). Throws Refused.
Owned describe_gpu(const Api& api, const std::string& json);

using Extent = std::array<std::int64_t, 4>;
Extent packed(const Extent& dimensions);  // strides of rows one behind the other

// What is given to a plan that runs: a tensor and where it lies, in the GPU's memory or, of a value, in the host's.
struct Operand {
  std::int64_t tensor = 0;
  void* data = nullptr;
};

class Plan {
 public:
  Plan(const Api& api, Owned plan, std::size_t workspace) : api_{&api}, plan_{std::move(plan)}, workspace_{workspace} {}
  [[nodiscard]] std::size_t workspace() const { return workspace_; }
  // On the handle's stream. Throws Refused.
  void run(Handle handle, std::span<const Operand> operands, void* workspace) const;

 private:
  const Api* api_;
  Owned plan_;
  std::size_t workspace_;
};

class Graph {
 public:
  explicit Graph(const Api& api) : api_{api} {}

  std::int64_t tensor(const Extent& dimensions, const Extent& strides, Data data) { return add(dimensions, strides, data, false, false); }
  std::int64_t between(const Extent& dimensions, const Extent& strides, Data data) { return add(dimensions, strides, data, true, false); }
  std::int64_t between(const Extent& dimensions, Data data = Data::kFloat) { return between(dimensions, packed(dimensions), data); }
  std::int64_t value() { return add({1, 1, 1, 1}, {1, 1, 1, 1}, Data::kFloat, false, true); }

  void matmul(std::int64_t a, std::int64_t b, std::int64_t c);
  void pointwise(Pointwise mode, std::int64_t x, std::int64_t y);
  void pointwise(Pointwise mode, std::int64_t x, std::int64_t b, std::int64_t y);
  // y = mask ? x : otherwise
  void select(std::int64_t x, std::int64_t otherwise, std::int64_t mask, std::int64_t y);
  // y = the index along an axis
  void index(std::int64_t axis, std::int64_t x, std::int64_t y);
  // Along the axes in which y is 1 long, or shorter.
  void reduce(Reduce how, std::int64_t x, std::int64_t y);
  void reshape(std::int64_t x, std::int64_t y);

  // By the first engine of those that the library's heuristics name that takes the graph. Throws Refused where there is none.
  Plan plan(const Target& target);
  // How many engines its heuristics name. Throws Refused where the operations make no graph.
  std::size_t engines(const Target& target);

 private:
  std::int64_t add(const Extent& dimensions, const Extent& strides, Data data, bool is_virtual, bool by_value);
  const Owned& at(std::int64_t tensor) const { return tensors_[static_cast<std::size_t>(tensor - 1)]; }
  void elementwise(Pointwise mode, Data precision, std::int64_t y, std::initializer_list<std::pair<Attribute, std::int64_t>> operands, std::optional<std::int64_t> axis = {});
  void close(Owned operation, const char* what);
  Owned graph(const Target& target);
  std::vector<Owned> engines(const Owned& graph, const Target& target, Heuristic mode);

  const Api& api_;
  std::vector<Owned> tensors_;
  std::vector<Owned> parts_;  // what operations refer to
  std::vector<Owned> operations_;
};

}  // namespace stepcast::executor::cudnn
