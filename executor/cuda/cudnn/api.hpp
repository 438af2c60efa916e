// executor/cuda/cudnn/api.hpp — cuDNN as found at run time: the types, numbers and functions of its documented backend interface (version 9) that
// are used. No header of it is needed to build, and none of its libraries to start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace stepcast::executor::cudnn {

using Handle = void*;
using Descriptor = void*;
using Status = int;
inline constexpr Status kSuccess = 0;

// Values are cuDNN's (tests hold them against its header where there is one).
enum class Data : int { kFloat = 0, kHalf = 2, kInt32 = 4, kBfloat16 = 9, kBoolean = 11 };
enum class Pointwise : int { kAdd = 0, kMul = 1, kDiv = 6, kSub = 9, kExp = 13, kLog = 15, kIdentity = 21, kGreaterOrEqual = 303, kIndex = 501, kSelect = 601 };
enum class Reduce : int { kAdd = 0, kMax = 3 };
enum class Heuristic : int { kFallback = 2, kBest = 3 };

enum class Type : int { kHandle = 0, kData = 1, kBoolean = 2, kInt64 = 3, kFloat = 4, kPointer = 6, kHeuristic = 8, kPointwise = 14, kDescriptor = 15, kReduce = 18, kInt32 = 23, kChar = 24 };

enum class Kind : int {
  kPointwise = 0,
  kEngineConfiguration = 3,
  kHeuristic = 4,
  kPlan = 5,
  kPointwiseOperation = 13,
  kGraph = 15,
  kVariantPack = 16,
  kTensor = 17,
  kMatmul = 18,
  kMatmulOperation = 19,
  kReduction = 21,
  kReductionOperation = 22,
  kReshapeOperation = 31,
  kDeviceProperties = 38,
};

enum class Attribute : int {
  kPointwiseMode = 0,
  kPointwisePrecision = 1,
  kPointwiseAxis = 9,
  kHeuristicMode = 200,
  kHeuristicGraph = 201,
  kHeuristicResults = 202,
  kHeuristicDevice = 204,
  kPlanHandle = 400,
  kPlanEngine = 401,
  kPlanWorkspace = 402,
  kPlanDevice = 407,
  kPointwiseDescriptor = 750,
  kPointwiseX = 751,
  kPointwiseB = 752,
  kPointwiseY = 753,
  kPointwiseT = 758,
  kGraphHandle = 800,
  kGraphOperations = 801,
  kTensorAlignment = 900,
  kTensorData = 901,
  kTensorDimensions = 902,
  kTensorStrides = 903,
  kTensorId = 906,
  kTensorVirtual = 907,
  kTensorByValue = 908,
  kPackIds = 1000,
  kPackPointers = 1001,
  kPackWorkspace = 1003,
  kMatmulPrecision = 1500,
  kMatmulA = 1520,
  kMatmulB = 1521,
  kMatmulC = 1522,
  kMatmulDescriptor = 1523,
  kReductionOperator = 1600,
  kReductionPrecision = 1601,
  kReductionX = 1610,
  kReductionY = 1611,
  kReductionDescriptor = 1612,
  kReshapeX = 2200,
  kReshapeY = 2201,
  kDeviceJson = 2702,
};

struct Api {
  std::size_t (*version)() = nullptr;
  const char* (*error_string)(Status) = nullptr;
  void (*last_error)(char* message, std::size_t size) = nullptr;
  Status (*create)(Handle*) = nullptr;
  Status (*destroy)(Handle) = nullptr;
  Status (*set_stream)(Handle, void* stream) = nullptr;
  Status (*create_descriptor)(Kind, Descriptor*) = nullptr;
  Status (*destroy_descriptor)(Descriptor) = nullptr;
  Status (*set_attribute)(Descriptor, Attribute, Type, std::int64_t count, const void* elements) = nullptr;
  Status (*get_attribute)(Descriptor, Attribute, Type, std::int64_t room, std::int64_t* count, void* elements) = nullptr;
  Status (*finalize)(Descriptor) = nullptr;
  Status (*execute)(Handle, Descriptor plan, Descriptor variant_pack) = nullptr;
};

// "9.19.0"
std::string version_text(std::size_t version);

// The library that the system has, loaded for as long as the process lives. Without one, of another major version, or without a function, `why_not`
// says so.
std::optional<Api> load(std::string& why_not);

}  // namespace stepcast::executor::cudnn
