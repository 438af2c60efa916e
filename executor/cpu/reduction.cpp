#include "executor/cpu/reduction.hpp"

#include <Eigen/Core>

#include "sim/base/check.hpp"

namespace stepcast::executor {
namespace {

template <class T>
void add_as(std::span<std::byte> into, std::span<const std::byte> from) {
  const auto n = static_cast<Eigen::Index>(into.size() / sizeof(T));
  using Array = Eigen::Array<T, Eigen::Dynamic, 1>;
  Eigen::Map<Array> a{reinterpret_cast<T*>(into.data()), n};
  a += Eigen::Map<const Array>{reinterpret_cast<const T*>(from.data()), n};
}

}  // namespace

bool can_add(plan::Dtype dtype) { return dtype != plan::Dtype::kFp8; }

void add_into(plan::Dtype dtype, std::span<std::byte> into, std::span<const std::byte> from) {
  SIM_CHECK(into.size() == from.size(), into.size(), from.size());
  switch (dtype) {
    case plan::Dtype::kFp32:
    case plan::Dtype::kTf32: return add_as<float>(into, from);
    case plan::Dtype::kBf16: return add_as<Eigen::bfloat16>(into, from);
    case plan::Dtype::kFp16: return add_as<Eigen::half>(into, from);
    case plan::Dtype::kFp8: break;
  }
  SIM_CHECK(can_add(dtype), static_cast<int>(dtype));
}

}  // namespace stepcast::executor
