// executor/common/parameters.hpp — a worker's parameters in one row, in the order in which their gradients become ready, so that gradient
// buckets are ranges of it, as distributed data parallelism lays them out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/common/transformer_facts.hpp"

namespace stepcast::executor {

struct Parameter {
  std::string name;                    // "qkv", "norm1", "embedding"
  std::optional<std::uint16_t> layer;
  std::int64_t rows = 1;
  std::int64_t columns = 0;
  std::size_t offset = 0;              // in the row of all
  bool replicated = false;             // the same on all tensor-parallel workers

  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(rows * columns); }
};

class Parameters {
 public:
  Parameters(const TransformerFacts& facts, const plan::Program& program);

  [[nodiscard]] const Parameter& get(const std::string& name, std::optional<std::uint16_t> layer) const;
  [[nodiscard]] const std::vector<Parameter>& all() const { return all_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  // First values: every element depends on the seed and on where it lies in the whole model, not on how that is cut.
  [[nodiscard]] std::vector<float> initial(std::uint64_t seed) const;

 private:
  TransformerFacts facts_;
  std::vector<Parameter> all_;
  std::map<std::pair<std::string, int>, std::size_t> index_;
  std::size_t size_ = 0;
};

}  // namespace stepcast::executor
