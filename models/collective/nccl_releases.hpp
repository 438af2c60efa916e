// models/collective/nccl_releases.hpp — what NCCL could and how it chose by release, for clusters that run an old one.
//
// Model    Algorithms came with releases: PXN 2.12, NVLS 2.17, NVLS trees 2.18, PAT 2.23.
//          Before 2.5 there was neither LL128 nor an estimate of times. A tree up to                (1)
//              b t / (b - t) (l_ring - l_tree),  b = 5000 B/us a channel (NVLink; 5000 in all over PCIe),
//              t = 3/4 b (2/3), twice that for two hosts over NVLink: then trees always,
//              l_ring = 6 us (n - 1),  l_tree = 15 us log2 N + 4 us (n/N - 1);  no trees in one host;
//          LL up to channels * 256 threads * c * 64 B, twice that over several hosts,               (2)
//              c the ranks of a ring; of a tree 1, and four times as much; Simple beyond.
// Symbols  n ranks, N hosts, S bytes
// Source   NVIDIA/nccl: release notes of 2.12, 2.17, 2.18 and 2.23; (1) ncclTreeThreshold of src/init.cu, (2) getKernelInfo of
//          src/enqueue.cu with the thresholds of src/include/enqueue.h and init.cu, all of 2.4
// Valid    (1), (2): Volta and later, NCCL 2.4
// Ignores  environment variables (NCCL_LL_THRESHOLD, NCCL_TREE_THRESHOLD: fix the algorithm or protocol instead); what
//          releases changed in kernels and constants
// Tests    unit/nccl_releases_test
#pragma once

#include <cstdint>
#include <optional>

#include "models/collective/cost.hpp"

namespace stepcast::collective {

inline constexpr std::int32_t kFirstWithModel = 5;  // NCCL 2.5

bool has_algorithm(std::optional<std::int32_t> nccl, Algorithm algorithm);

// [bytes] the largest message of a tree (1), and of LL (2).
std::int64_t tree_limit(const Layout& layout, std::int64_t channels);
std::int64_t ll_limit(plan::CollectiveKind kind, Algorithm algorithm, const Layout& layout, std::int64_t channels);

}  // namespace stepcast::collective
