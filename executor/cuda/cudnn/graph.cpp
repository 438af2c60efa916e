#include "executor/cuda/cudnn/graph.hpp"

#include <algorithm>
#include <utility>

namespace stepcast::executor::cudnn {
namespace {

void require(const Api& api, Status status, const std::string& what) {
  if (status == kSuccess) return;
  std::array<char, 512> text{};
  api.last_error(text.data(), text.size());
  std::string words = text.data();
  throw Refused(what + ": " + api.error_string(status) + (words.empty() ? "" : ", " + words));
}

}  // namespace

Owned::Owned(const Api& api, Kind kind) : api_{&api} { require(api, api.create_descriptor(kind, &descriptor_), "a descriptor of kind " + std::to_string(static_cast<int>(kind))); }

Owned::~Owned() {
  if (descriptor_ != nullptr) api_->destroy_descriptor(descriptor_);
}

Owned::Owned(Owned&& other) noexcept : api_{other.api_}, descriptor_{std::exchange(other.descriptor_, nullptr)} {}

void Owned::set_many(Attribute attribute, Type type, std::int64_t count, const void* elements) {
  require(*api_, api_->set_attribute(descriptor_, attribute, type, count, elements), "attribute " + std::to_string(static_cast<int>(attribute)));
}

void Owned::finalize(const char* what) { require(*api_, api_->finalize(descriptor_), what); }

Owned describe_gpu(const Api& api, const std::string& json) {
  Owned properties{api, Kind::kDeviceProperties};
  properties.set_many(Attribute::kDeviceJson, Type::kChar, static_cast<std::int64_t>(json.size()), json.data());
  properties.finalize("a GPU's description");
  return properties;
}

Extent packed(const Extent& d) { return {d[1] * d[2] * d[3], d[2] * d[3], d[3], 1}; }

void Plan::run(Handle handle, std::span<const Operand> operands, void* workspace) const {
  std::vector<std::int64_t> ids;
  std::vector<void*> pointers;
  for (const Operand& o : operands) {
    ids.push_back(o.tensor);
    pointers.push_back(o.data);
  }
  Owned pack{*api_, Kind::kVariantPack};
  const auto count = static_cast<std::int64_t>(ids.size());
  pack.set_many(Attribute::kPackIds, Type::kInt64, count, ids.data());
  pack.set_many(Attribute::kPackPointers, Type::kPointer, count, pointers.data());
  pack.set(Attribute::kPackWorkspace, Type::kPointer, workspace);
  pack.finalize("the operands of a plan");
  require(*api_, api_->execute(handle, plan_.get(), pack.get()), "a plan that runs");
}

std::int64_t Graph::add(const Extent& dimensions, const Extent& strides, Data data, bool is_virtual, bool by_value) {
  const auto id = static_cast<std::int64_t>(tensors_.size()) + 1;
  Owned t{api_, Kind::kTensor};
  t.set(Attribute::kTensorId, Type::kInt64, id);
  t.set(Attribute::kTensorData, Type::kData, data);
  t.set_many(Attribute::kTensorDimensions, Type::kInt64, 4, dimensions.data());
  t.set_many(Attribute::kTensorStrides, Type::kInt64, 4, strides.data());
  t.set(Attribute::kTensorAlignment, Type::kInt64, std::int64_t{16});
  t.set(Attribute::kTensorVirtual, Type::kBoolean, is_virtual);
  t.set(Attribute::kTensorByValue, Type::kBoolean, by_value);
  t.finalize("a tensor");
  tensors_.push_back(std::move(t));
  return id;
}

void Graph::close(Owned operation, const char* what) {
  operation.finalize(what);
  operations_.push_back(std::move(operation));
}

void Graph::matmul(std::int64_t a, std::int64_t b, std::int64_t c) {
  Owned kind{api_, Kind::kMatmul};
  kind.set(Attribute::kMatmulPrecision, Type::kData, Data::kFloat);
  kind.finalize("a product");
  Owned operation{api_, Kind::kMatmulOperation};
  operation.set_descriptor(Attribute::kMatmulA, at(a));
  operation.set_descriptor(Attribute::kMatmulB, at(b));
  operation.set_descriptor(Attribute::kMatmulC, at(c));
  operation.set_descriptor(Attribute::kMatmulDescriptor, kind);
  parts_.push_back(std::move(kind));
  close(std::move(operation), "a product");
}

void Graph::elementwise(Pointwise mode, Data precision, std::int64_t y, std::initializer_list<std::pair<Attribute, std::int64_t>> operands, std::optional<std::int64_t> axis) {
  Owned kind{api_, Kind::kPointwise};
  kind.set(Attribute::kPointwiseMode, Type::kPointwise, mode);
  kind.set(Attribute::kPointwisePrecision, Type::kData, precision);
  if (axis) kind.set(Attribute::kPointwiseAxis, Type::kInt64, *axis);
  kind.finalize("an elementwise operation");
  Owned operation{api_, Kind::kPointwiseOperation};
  operation.set_descriptor(Attribute::kPointwiseDescriptor, kind);
  for (const auto& [which, tensor] : operands) operation.set_descriptor(which, at(tensor));
  operation.set_descriptor(Attribute::kPointwiseY, at(y));
  parts_.push_back(std::move(kind));
  close(std::move(operation), "an elementwise operation");
}

void Graph::pointwise(Pointwise mode, std::int64_t x, std::int64_t y) { elementwise(mode, Data::kFloat, y, {{Attribute::kPointwiseX, x}}); }

void Graph::pointwise(Pointwise mode, std::int64_t x, std::int64_t b, std::int64_t y) {
  const Data precision = mode == Pointwise::kGreaterOrEqual ? Data::kBoolean : Data::kFloat;
  elementwise(mode, precision, y, {{Attribute::kPointwiseX, x}, {Attribute::kPointwiseB, b}});
}

void Graph::select(std::int64_t x, std::int64_t otherwise, std::int64_t mask, std::int64_t y) {
  elementwise(Pointwise::kSelect, Data::kFloat, y, {{Attribute::kPointwiseX, x}, {Attribute::kPointwiseB, otherwise}, {Attribute::kPointwiseT, mask}});
}

void Graph::index(std::int64_t axis, std::int64_t x, std::int64_t y) { elementwise(Pointwise::kIndex, Data::kInt32, y, {{Attribute::kPointwiseX, x}}, axis); }

void Graph::reduce(Reduce how, std::int64_t x, std::int64_t y) {
  Owned kind{api_, Kind::kReduction};
  kind.set(Attribute::kReductionOperator, Type::kReduce, how);
  kind.set(Attribute::kReductionPrecision, Type::kData, Data::kFloat);
  kind.finalize("a reduction");
  Owned operation{api_, Kind::kReductionOperation};
  operation.set_descriptor(Attribute::kReductionDescriptor, kind);
  operation.set_descriptor(Attribute::kReductionX, at(x));
  operation.set_descriptor(Attribute::kReductionY, at(y));
  parts_.push_back(std::move(kind));
  close(std::move(operation), "a reduction");
}

void Graph::reshape(std::int64_t x, std::int64_t y) {
  Owned operation{api_, Kind::kReshapeOperation};
  operation.set_descriptor(Attribute::kReshapeX, at(x));
  operation.set_descriptor(Attribute::kReshapeY, at(y));
  close(std::move(operation), "a transposition");
}

Owned Graph::graph(const Target& target) {
  Owned graph{api_, Kind::kGraph};
  std::vector<Descriptor> operations;
  for (const Owned& operation : operations_) operations.push_back(operation.get());
  graph.set_many(Attribute::kGraphOperations, Type::kDescriptor, static_cast<std::int64_t>(operations.size()), operations.data());
  if (target.handle != nullptr) graph.set(Attribute::kGraphHandle, Type::kHandle, target.handle);
  graph.finalize("the graph");
  return graph;
}

std::vector<Owned> Graph::engines(const Owned& graph, const Target& target, Heuristic mode) {
  Owned heuristic{api_, Kind::kHeuristic};
  heuristic.set_descriptor(Attribute::kHeuristicGraph, graph);
  heuristic.set(Attribute::kHeuristicMode, Type::kHeuristic, mode);
  if (target.properties != nullptr) heuristic.set(Attribute::kHeuristicDevice, Type::kDescriptor, target.properties);
  heuristic.finalize("the choice of an engine");
  constexpr std::int64_t kMost = 16;
  std::vector<Owned> engines;
  std::array<Descriptor, kMost> slots{};
  for (Descriptor& slot : slots) slot = engines.emplace_back(api_, Kind::kEngineConfiguration).get();
  std::int64_t count = 0;
  require(api_, api_.get_attribute(heuristic.get(), Attribute::kHeuristicResults, Type::kDescriptor, kMost, &count, slots.data()), "the choice of an engine");
  while (engines.size() > static_cast<std::size_t>(std::max<std::int64_t>(0, count))) engines.pop_back();
  return engines;
}

std::size_t Graph::engines(const Target& target) { return engines(graph(target), target, Heuristic::kBest).size(); }

Plan Graph::plan(const Target& target) {
  const Owned whole = graph(target);
  std::string why;
  const auto keep = [&](const Refused& refused) {
    if (why.empty()) why = refused.what();
  };
  for (const Heuristic mode : {Heuristic::kBest, Heuristic::kFallback}) {
    try {
      for (const Owned& engine : engines(whole, target, mode)) {
        try {
          Owned plan{api_, Kind::kPlan};
          if (target.handle != nullptr) plan.set(Attribute::kPlanHandle, Type::kHandle, target.handle);
          if (target.properties != nullptr) plan.set(Attribute::kPlanDevice, Type::kDescriptor, target.properties);
          plan.set_descriptor(Attribute::kPlanEngine, engine);
          plan.finalize("an engine");
          std::int64_t count = 0;
          std::int64_t bytes = 0;
          require(api_, api_.get_attribute(plan.get(), Attribute::kPlanWorkspace, Type::kInt64, 1, &count, &bytes), "an engine's workspace");
          return {api_, std::move(plan), static_cast<std::size_t>(bytes)};
        } catch (const Refused& refused) {
          keep(refused);
        }
      }
    } catch (const Refused& refused) {
      keep(refused);
    }
  }
  throw Refused(why.empty() ? "no engine takes it" : why);
}

}  // namespace stepcast::executor::cudnn
