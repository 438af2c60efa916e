// sim/base/ids.hpp — indices that cannot be mixed up: LinkId + FlowId does not compile.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace stepcast {

template <class Tag, class Rep = std::uint32_t>
class Id {
 public:
  using rep = Rep;
  constexpr Id() = default;
  constexpr explicit Id(Rep value) : value_{value} {}
  constexpr explicit Id(std::size_t value) requires(!std::is_same_v<Rep, std::size_t>)
      : value_{static_cast<Rep>(value)} {}
  [[nodiscard]] constexpr Rep value() const { return value_; }
  [[nodiscard]] constexpr std::size_t index() const { return static_cast<std::size_t>(value_); }
  friend constexpr auto operator<=>(Id, Id) = default;

 private:
  Rep value_ = 0;
};

using RankId = Id<struct RankTag>;      // a worker, 0-based, in the launcher's order
using NodeId = Id<struct NodeTag>;      // a host
using DeviceId = Id<struct DeviceTag>;  // a vertex of the hardware graph
using LinkId = Id<struct LinkTag>;      // a directed edge of the hardware graph

}  // namespace stepcast
