#include "executor/cpu/reduction.hpp"

#include <Eigen/Core>

#include "sim/base/check.hpp"

namespace stepcast::executor {
namespace {

template <class T>
void reduce_as(Reduction how, std::span<std::byte> into, std::span<const std::byte> from) {
  const auto n = static_cast<Eigen::Index>(into.size() / sizeof(T));
  using Array = Eigen::Array<T, Eigen::Dynamic, 1>;
  Eigen::Map<Array> a{reinterpret_cast<T*>(into.data()), n};
  const Eigen::Map<const Array> b{reinterpret_cast<const T*>(from.data()), n};
  if (how == Reduction::kSum) {
    a += b;
  } else {
    a = a.max(b);
  }
}

}  // namespace

void reduce_into(Reduction how, plan::Dtype dtype, std::span<std::byte> into, std::span<const std::byte> from) {
  SIM_CHECK(into.size() == from.size(), into.size(), from.size());
  switch (dtype) {
    case plan::Dtype::kFp32:
    case plan::Dtype::kTf32: return reduce_as<float>(how, into, from);
    case plan::Dtype::kBf16: return reduce_as<Eigen::bfloat16>(how, into, from);
    case plan::Dtype::kFp16: return reduce_as<Eigen::half>(how, into, from);
    case plan::Dtype::kFp8: break;
  }
  SIM_CHECK(can_add(dtype), static_cast<int>(dtype));
}

}  // namespace stepcast::executor
