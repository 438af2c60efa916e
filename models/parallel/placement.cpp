#include "models/parallel/placement.hpp"

namespace stepcast::parallel {

std::int32_t Placement::position(ChunkPlace place) const {
  switch (arrangement) {
    case Arrangement::kLinear:
    case Arrangement::kInterleaved: return place.chunk * stages + place.stage;
    case Arrangement::kV: return place.chunk == 0 ? place.stage : 2 * stages - 1 - place.stage;
    case Arrangement::kDual: return place.chunk == 0 ? place.stage : stages - 1 - place.stage;
  }
  return 0;
}

std::optional<ChunkPlace> Placement::moved(ChunkPlace place, std::int32_t step) const {
  const std::int32_t to = position(place) + step;
  if (to < 0 || to >= positions()) return std::nullopt;
  switch (arrangement) {
    case Arrangement::kLinear:
    case Arrangement::kInterleaved: return ChunkPlace{to % stages, static_cast<std::uint8_t>(to / stages)};
    case Arrangement::kV:
      return to < stages ? ChunkPlace{to, 0} : ChunkPlace{2 * stages - 1 - to, 1};
    case Arrangement::kDual: return ChunkPlace{place.chunk == 0 ? to : stages - 1 - to, place.chunk};
  }
  return std::nullopt;
}

const char* name_of(Arrangement arrangement) {
  switch (arrangement) {
    case Arrangement::kLinear: return "linear";
    case Arrangement::kInterleaved: return "interleaved";
    case Arrangement::kV: return "v";
    case Arrangement::kDual: return "dualpipe";
  }
  return "";
}

}  // namespace stepcast::parallel
