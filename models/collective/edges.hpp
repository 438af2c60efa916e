// models/collective/edges.hpp — who sends how much to whom: a collective as edges between GPUs.
//
// Model    A pipelined collective is one fluid of `traffic` bytes; edge e carries share_e * traffic.
//          Ring all-reduce of S bytes on n ranks: every ring edge carries 2 (n-1)/n S in total,
//          all-gather and reduce-scatter (n-1)/n S, broadcast S.                               (1)
//          Double binary tree all-reduce: half of S goes up and down each of two trees whose inner
//          nodes are disjoint, so a node sends and receives 2 S at most.                       (2)
//          All-to-all of S bytes a rank: S/n between every ordered pair.                       (3)
//          Send and receive: S from each rank to the next.                                      (4)
//          NVLS, NVLS tree and CollNet: switch_edges.cpp; PAT: pat_edges.cpp; PXN: pxn_edges.cpp; in levels:
//          hierarchical_edges.cpp.
// Source   (1) Patarasuk and Yuan 2009; (2) Sanders, Speck, Traeff 2009; NCCL's busbw definitions
//          (nccl-tests doc/PERFORMANCE.md) give the same factors.
// Layout   Ranks of one node are chained through its NVSwitch or PCIe; between nodes one ring (tree)
//          per local rank enters and leaves every node at the same local GPU, so it keeps its rail;
//          the chain's last GPU hands over to that GPU inside the node (PXN). In a host without a switch
//          chains use all direct links (mesh.hpp) and leave over the NIC of the GPU that they end at.
// Ignores  rings that prefer another NIC than their GPU's own
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/collective/mesh.hpp"
#include "models/collective/parameters.hpp"
#include "models/collective/volumes.hpp"
#include "sim/plan/instruction.hpp"

namespace stepcast::collective {

struct Member {
  std::uint32_t gpu = 0;   // global GPU index
  std::uint32_t node = 0;  // host it sits in, or NVLink domain of several hosts
};

struct Edge {
  std::uint32_t from = 0;  // global GPU index
  std::uint32_t to = 0;
  double share = 1.0;      // of the traffic of equations (1) to (4)
};

// Members in rank order; volumes are of all-to-all. Cost O(n * local ranks) for rings and trees, O(n^2) for pairwise. Requires: with a mesh, a GPU's
// index in its host is its global index modulo mesh.gpus.
std::vector<Edge> edges_of(Algorithm algorithm, std::span<const Member> members, const HostMesh& mesh = {},
                           const Volumes& volumes = {});

// Bytes of traffic by equations (1) to (4). Requires: ranks >= 1; bytes as plan::Collective::bytes.
double traffic_bytes(plan::CollectiveKind kind, Algorithm algorithm, Bytes bytes, std::size_t ranks);

}  // namespace stepcast::collective
