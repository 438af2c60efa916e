// models/collective/mesh.hpp — rings over the direct links between the GPUs of a host without a switch: xGMI between all
// pairs (MI300X), hybrid cube mesh (DGX-1).
//
// Model    NCCL and RCCL search rings until the links are used up. Where all GPUs have the same number of links d, so many
//          rings exist that each carries 1/d of the traffic and a pair of k parallel links k/d of it (full mesh of n: d = n-1;
//          cube mesh of DGX-1: d = 6). Otherwise rings are taken greedily, the widest first.    (1)
//          A chain through the host is a ring cut at any place: (m-1)/m of it.                  (2)
// Source   decomposition of complete digraphs into Hamiltonian cycles: Tillson 1980 (all n but 4 and 6, for which the same
//          holds of fractions); NCCL's rings of a DGX-1V: 6 that use every NVLink once each way; RCCL's rings of MI300X use all
//          links of the mesh
// Ignores  which GPU a chain starts at; meshes of more than 8 GPUs with unlike numbers of links (one order of the GPUs)
// Tests    unit/collective_mesh_test
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stepcast::collective {

// Direct links between the GPUs of a host, in any unit of rate. None: a switch or a bus that all share.
struct HostMesh {
  std::uint32_t gpus = 0;
  std::vector<double> links{};  // [from * gpus + to]; symmetric; 0: no direct link

  [[nodiscard]] bool empty() const { return gpus == 0; }
  [[nodiscard]] double between(std::uint32_t from, std::uint32_t to) const { return links[from * gpus + to]; }
};

struct MeshShare {
  std::size_t from = 0;         // places in `local`
  std::size_t to = 0;
  double share = 0.0;           // of the traffic of all rings together
};

// What rings through these GPUs of the host (local indices) put on each pair; empty where none goes over direct links
// alone. Cost O(m^2); for unlike numbers of links, O(m!) with m <= 8.
std::vector<MeshShare> mesh_rings(const HostMesh& mesh, std::span<const std::uint32_t> local);

}  // namespace stepcast::collective
