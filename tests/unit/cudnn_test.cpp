// cuDNN's attention without a GPU: our numbers against its header, the choice and its falls-back on a table of functions made here, and where the
// library is installed, whether its engines take our graphs on the GPUs that it is told of.
#include <doctest/doctest.h>

#include <dlfcn.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "executor/cuda/cudnn/attention_library.hpp"

#ifdef STEPCAST_CUDNN_HEADER
#include <cudnn.h>
#endif

using namespace stepcast;
using namespace stepcast::executor;
using namespace stepcast::executor::cudnn;

TEST_SUITE_BEGIN("unit");

namespace {

const kernels::FlashShape kShape{2, 8, 2, 256, 256, 64, 64, true, 0};

// What a library does that counts its descriptors, notes what it is told, and refuses as it is asked to.
struct Fake {
  struct Told {
    Kind kind;
    std::map<Attribute, std::vector<std::int64_t>> whole;  // whole numbers and identities of descriptors
  };
  std::map<Descriptor, Told> alive;
  std::intptr_t made = 0;
  std::int64_t engines = 2;
  int engines_refused = 0;         // the first so many plans
  Kind refused = Kind{-1};         // descriptors that do not finalize
  Status start = kSuccess;
  int runs = 0;
  std::set<std::int64_t> tensors;  // stored ones
  std::vector<std::int64_t> given; // to the last run
};
Fake* fake = nullptr;  // functions of C have no object

constexpr Status kNotSupported = 3000;

Api fake_api() {
  Api api;
  api.version = []() -> std::size_t { return 91900; };
  api.error_string = [](Status s) { return s == kNotSupported ? "NOT_SUPPORTED" : "TROUBLE"; };
  api.last_error = [](char* text, std::size_t size) { std::string{"in its own words"}.copy(text, size - 1); };
  api.create = [](Handle* handle) {
    *handle = fake;
    return fake->start;
  };
  api.destroy = [](Handle) { return kSuccess; };
  api.set_stream = [](Handle, void*) { return kSuccess; };
  api.create_descriptor = [](Kind kind, Descriptor* d) {
    *d = reinterpret_cast<Descriptor>(++fake->made);
    fake->alive[*d].kind = kind;
    return kSuccess;
  };
  api.destroy_descriptor = [](Descriptor d) { return fake->alive.erase(d) == 1 ? kSuccess : kNotSupported; };
  api.set_attribute = [](Descriptor d, Attribute attribute, Type type, std::int64_t count, const void* elements) {
    std::vector<std::int64_t>& kept = fake->alive.at(d).whole[attribute];
    for (std::int64_t i = 0; i < count; ++i) {
      if (type == Type::kInt64 || type == Type::kDescriptor) kept.push_back(static_cast<const std::int64_t*>(elements)[i]);
      if (type == Type::kBoolean) kept.push_back(static_cast<const bool*>(elements)[i] ? 1 : 0);
    }
    return kSuccess;
  };
  api.get_attribute = [](Descriptor, Attribute attribute, Type, std::int64_t, std::int64_t* count, void* elements) {
    *count = attribute == Attribute::kHeuristicResults ? fake->engines : 1;
    if (attribute == Attribute::kPlanWorkspace) *static_cast<std::int64_t*>(elements) = 1000;
    return kSuccess;
  };
  api.finalize = [](Descriptor d) {
    Fake::Told& told = fake->alive.at(d);
    if (told.kind == fake->refused) return kNotSupported;
    if (told.kind == Kind::kPlan && fake->engines_refused-- > 0) return kNotSupported;
    if (told.kind == Kind::kTensor && told.whole[Attribute::kTensorVirtual].at(0) == 0) fake->tensors.insert(told.whole[Attribute::kTensorId].at(0));
    if (told.kind == Kind::kVariantPack) fake->given = told.whole[Attribute::kPackIds];
    // What an operation is made of is there.
    for (const auto& [attribute, values] : told.whole) {
      const bool refers = told.kind == Kind::kMatmulOperation || told.kind == Kind::kReductionOperation || told.kind == Kind::kReshapeOperation || told.kind == Kind::kPointwiseOperation || attribute == Attribute::kGraphOperations;
      for (const std::int64_t value : values) {
        if (refers && !fake->alive.contains(reinterpret_cast<Descriptor>(value))) return kNotSupported;
      }
    }
    return kSuccess;
  };
  api.execute = [](Handle, Descriptor, Descriptor) {
    ++fake->runs;
    return kSuccess;
  };
  return api;
}

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

#ifdef STEPCAST_CUDNN_HEADER
TEST_CASE("cudnn: our numbers are the header's") {
  const auto same = [](auto ours, auto theirs) { CHECK(static_cast<int>(ours) == static_cast<int>(theirs)); };
  same(Data::kFloat, CUDNN_DATA_FLOAT);
  same(Data::kHalf, CUDNN_DATA_HALF);
  same(Data::kInt32, CUDNN_DATA_INT32);
  same(Data::kBfloat16, CUDNN_DATA_BFLOAT16);
  same(Data::kBoolean, CUDNN_DATA_BOOLEAN);
  same(Pointwise::kAdd, CUDNN_POINTWISE_ADD);
  same(Pointwise::kMul, CUDNN_POINTWISE_MUL);
  same(Pointwise::kDiv, CUDNN_POINTWISE_DIV);
  same(Pointwise::kSub, CUDNN_POINTWISE_SUB);
  same(Pointwise::kExp, CUDNN_POINTWISE_EXP);
  same(Pointwise::kLog, CUDNN_POINTWISE_LOG);
  same(Pointwise::kIdentity, CUDNN_POINTWISE_IDENTITY);
  same(Pointwise::kGreaterOrEqual, CUDNN_POINTWISE_CMP_GE);
  same(Pointwise::kIndex, CUDNN_POINTWISE_GEN_INDEX);
  same(Pointwise::kSelect, CUDNN_POINTWISE_BINARY_SELECT);
  same(Reduce::kAdd, CUDNN_REDUCE_TENSOR_ADD);
  same(Reduce::kMax, CUDNN_REDUCE_TENSOR_MAX);
  same(Heuristic::kFallback, CUDNN_HEUR_MODE_FALLBACK);
  same(Heuristic::kBest, CUDNN_HEUR_MODE_A);
  same(Type::kHandle, CUDNN_TYPE_HANDLE);
  same(Type::kData, CUDNN_TYPE_DATA_TYPE);
  same(Type::kBoolean, CUDNN_TYPE_BOOLEAN);
  same(Type::kInt64, CUDNN_TYPE_INT64);
  same(Type::kPointer, CUDNN_TYPE_VOID_PTR);
  same(Type::kHeuristic, CUDNN_TYPE_HEUR_MODE);
  same(Type::kPointwise, CUDNN_TYPE_POINTWISE_MODE);
  same(Type::kDescriptor, CUDNN_TYPE_BACKEND_DESCRIPTOR);
  same(Type::kReduce, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE);
  same(Type::kChar, CUDNN_TYPE_CHAR);
  same(Kind::kPointwise, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  same(Kind::kEngineConfiguration, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  same(Kind::kHeuristic, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  same(Kind::kPlan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  same(Kind::kPointwiseOperation, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  same(Kind::kGraph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  same(Kind::kVariantPack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  same(Kind::kTensor, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  same(Kind::kMatmul, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  same(Kind::kMatmulOperation, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  same(Kind::kReduction, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  same(Kind::kReductionOperation, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  same(Kind::kReshapeOperation, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  same(Attribute::kPointwiseMode, CUDNN_ATTR_POINTWISE_MODE);
  same(Attribute::kPointwisePrecision, CUDNN_ATTR_POINTWISE_MATH_PREC);
  same(Attribute::kPointwiseAxis, CUDNN_ATTR_POINTWISE_AXIS);
  same(Attribute::kHeuristicMode, CUDNN_ATTR_ENGINEHEUR_MODE);
  same(Attribute::kHeuristicGraph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  same(Attribute::kHeuristicResults, CUDNN_ATTR_ENGINEHEUR_RESULTS);
  same(Attribute::kPlanHandle, CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
  same(Attribute::kGraphHandle, CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
  same(Attribute::kPlanEngine, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  same(Attribute::kPlanWorkspace, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
  same(Attribute::kPointwiseDescriptor, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  same(Attribute::kPointwiseX, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
  same(Attribute::kPointwiseB, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
  same(Attribute::kPointwiseY, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
  same(Attribute::kPointwiseT, CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
  same(Attribute::kGraphOperations, CUDNN_ATTR_OPERATIONGRAPH_OPS);
  same(Attribute::kTensorAlignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
  same(Attribute::kTensorData, CUDNN_ATTR_TENSOR_DATA_TYPE);
  same(Attribute::kTensorDimensions, CUDNN_ATTR_TENSOR_DIMENSIONS);
  same(Attribute::kTensorStrides, CUDNN_ATTR_TENSOR_STRIDES);
  same(Attribute::kTensorId, CUDNN_ATTR_TENSOR_UNIQUE_ID);
  same(Attribute::kTensorVirtual, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
  same(Attribute::kTensorByValue, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
  same(Attribute::kPackIds, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  same(Attribute::kPackPointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  same(Attribute::kPackWorkspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  same(Attribute::kMatmulPrecision, CUDNN_ATTR_MATMUL_COMP_TYPE);
  same(Attribute::kMatmulA, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
  same(Attribute::kMatmulB, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
  same(Attribute::kMatmulC, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
  same(Attribute::kMatmulDescriptor, CUDNN_ATTR_OPERATION_MATMUL_DESC);
  same(Attribute::kReductionOperator, CUDNN_ATTR_REDUCTION_OPERATOR);
  same(Attribute::kReductionPrecision, CUDNN_ATTR_REDUCTION_COMP_TYPE);
  same(Attribute::kReductionX, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
  same(Attribute::kReductionY, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
  same(Attribute::kReductionDescriptor, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
  same(Attribute::kReshapeX, CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
  same(Attribute::kReshapeY, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
#if CUDNN_VERSION >= 90800
  same(Kind::kDeviceProperties, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  same(Attribute::kHeuristicDevice, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
  same(Attribute::kPlanDevice, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
  same(Attribute::kDeviceJson, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
#endif
  same(kNotSupported, CUDNN_STATUS_NOT_SUPPORTED);
}
#endif

TEST_CASE("cudnn: the versions of the library as people write them") {
  CHECK(version_text(91900) == "9.19.0");
  CHECK(version_text(90102) == "9.1.2");
  CHECK(version_text(8907) == "8.9.7");
}

TEST_CASE("cudnn: the first engine that takes a pass runs it, with every stored tensor given once, and nothing is left behind") {
  Fake state;
  fake = &state;
  {
    AttentionLibrary library{fake_api()};
    state.engines_refused = 1;
    for (const Pass pass : {Pass::kForward, Pass::kBackward}) {
      state.tensors.clear();
      const AttentionPlan* const plan = library.plan(kShape, plan::Dtype::kBf16, pass);
      REQUIRE(plan != nullptr);
      CHECK(library.plan(kShape, plan::Dtype::kBf16, pass) == plan);
      // Backward: D, 4 bytes a query and head, and dQ in fp32, both in whole lines of 256 bytes.
      CHECK(plan->workspace() == (pass == Pass::kForward ? 1000U : 1000U + 4U * 2 * 8 * 256 + 4U * 2 * 8 * 256 * 64));
      CHECK(plan->zeroed() == (pass == Pass::kForward ? 0U : 4U * 2 * 8 * 256 * 64));
      std::vector<float> memory(plan->workspace());
      library.run(*plan, nullptr, {}, memory.data());
      std::vector<std::int64_t> given = state.given;
      std::sort(given.begin(), given.end());
      CHECK(given == std::vector<std::int64_t>{state.tensors.begin(), state.tensors.end()});
    }
    CHECK(state.runs == 2);
    CHECK(library.account() == "cuDNN 9.19.0");
  }
  CHECK(state.alive.empty());
}

TEST_CASE("cudnn: what the library does not take falls back, and the account says what and why") {
  Fake state;
  fake = &state;
  {
    AttentionLibrary library{fake_api()};
    CHECK(library.plan(kShape, plan::Dtype::kBf16, Pass::kForward) != nullptr);
    state.refused = Kind::kReshapeOperation;  // only the backward pass has any
    CHECK(library.plan(kShape, plan::Dtype::kBf16, Pass::kBackward) == nullptr);
    CHECK(library.account() == "cuDNN 9.19.0; our own kernels for backward of 2 x 256 tokens, 8 heads (2 of keys) of 64, causal, bf16: a transposition: NOT_SUPPORTED, in its own words");
  }
  CHECK(state.alive.empty());
  state.refused = Kind{-1};
  {
    AttentionLibrary library{fake_api()};
    state.engines_refused = 4;  // two heuristics name two each
    CHECK(library.plan(kShape, plan::Dtype::kFp16, Pass::kForward) == nullptr);
    CHECK(contains(library.account(), "our own kernels (cuDNN 9.19.0 takes none: forward of"));
    CHECK(contains(library.account(), "an engine: NOT_SUPPORTED"));
    state.engines = 0;
    CHECK(library.plan(kShape, plan::Dtype::kBf16, Pass::kForward) == nullptr);
    CHECK(contains(library.account(), "no engine takes it"));
    kernels::FlashShape window = kShape;
    window.window = 64;
    CHECK(library.plan(window, plan::Dtype::kBf16, Pass::kForward) == nullptr);
    CHECK(contains(library.account(), "attention over a window"));
    kernels::FlashShape late = kShape;
    late.query_length = 128;
    CHECK(library.plan(late, plan::Dtype::kBf16, Pass::kForward) == nullptr);
    CHECK(contains(library.account(), "2 x 128 on 256 tokens"));
  }
  CHECK(state.alive.empty());
}

TEST_CASE("cudnn: without the library, or where it does not start, everything falls back") {
  AttentionLibrary none{std::string{"libcudnn.so.9 is not here"}};
  CHECK(none.plan(kShape, plan::Dtype::kBf16, Pass::kForward) == nullptr);
  CHECK(none.account() == "our own kernels (libcudnn.so.9 is not here)");
  Fake state;
  state.start = 1001;
  fake = &state;
  AttentionLibrary ill{fake_api()};
  CHECK(ill.plan(kShape, plan::Dtype::kBf16, Pass::kForward) == nullptr);
  CHECK(ill.account() == "our own kernels (cuDNN 9.19.0 does not start: TROUBLE)");
}

// The library is asked for GPUs that it is only told of. Engines that compile look for the driver's libcuda; without a driver the one that CUDA
// brings for linking is enough, since nothing is run.
TEST_CASE("cudnn: the library's engines take our graphs on A100, H100 and B200") {
  std::string why;
  const std::optional<Api> api = load(why);
  if (!api || api->version() < 90800) {
    MESSAGE("skipped: " << (api ? "cuDNN before 9.8 cannot be asked about GPUs that are not here" : why));
    return;
  }
#ifdef STEPCAST_LINK_LIBCUDA
  if (::dlopen("libcuda.so.1", RTLD_NOW) == nullptr && ::dlopen(STEPCAST_LINK_LIBCUDA, RTLD_NOW) == nullptr) {
#else
  if (::dlopen("libcuda.so.1", RTLD_NOW) == nullptr) {
#endif
    MESSAGE("skipped: neither the driver's libcuda nor CUDA's own for linking is here");
    return;
  }
  struct Gpu {
    const char* name;
    int compute, multiprocessors, shared;
  };
  for (const Gpu& gpu : {Gpu{"A100", 800, 108, 166912}, Gpu{"H100", 900, 132, 232448}, Gpu{"B200", 1000, 148, 232448}}) {
    CAPTURE(gpu.name);
    const Owned described = describe_gpu(
        *api, "{\"deviceVer\":" + std::to_string(gpu.compute) + ",\"driverVer\":13000,\"cudaDeviceId\":0,\"totalGlobalMem\":85899345920,\"maxGridSize\":[2147483647,65535,65535],"
              "\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,\"multiProcessorCount\":" + std::to_string(gpu.multiprocessors) +
              ",\"warpSize\":32,\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":" + std::to_string(gpu.shared) +
              ",\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"pciDeviceId\":0,"
              "\"isTccDriver\":0,\"supportCoopLaunch\":1,\"smClockRateKHz\":1410000,\"memClockRateKHz\":1593000,\"l2CacheSize\":41943040,\"deviceName\":\"" + gpu.name + "\"}");
    const Target target{.handle = nullptr, .properties = described.get()};
    const auto engines = [&](const kernels::FlashShape& shape, plan::Dtype dtype, Pass pass) { return AttentionGraph{*api, shape, dtype, pass}.graph().engines(target); };
    for (const Pass pass : {Pass::kForward, Pass::kBackward}) {
      CAPTURE(static_cast<int>(pass));
      CHECK(engines({2, 8, 8, 1024, 1024, 64, 64, true, 0}, plan::Dtype::kBf16, pass) > 0);
      CHECK(engines({2, 8, 2, 1024, 1024, 128, 128, true, 0}, plan::Dtype::kFp16, pass) > 0);
      CHECK(engines({1, 16, 16, 512, 512, 64, 64, false, 0}, plan::Dtype::kBf16, pass) > 0);
      CHECK(engines({1, 1, 1, 64, 64, 65, 65, true, 0}, plan::Dtype::kBf16, pass) == 0);  // rows that begin anywhere
    }
  }
}
