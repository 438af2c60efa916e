// models/collective/mesh_chains.hpp — rings of a mesh as edges between GPUs. Internal to models/collective.
#pragma once

#include <map>
#include <vector>

#include "models/collective/hosts.hpp"

namespace stepcast::collective {

// What chains through the hosts put on their mesh; hosts whose members sit alike share a search.
class MeshChains {
 public:
  explicit MeshChains(const HostMesh& mesh) : mesh_{mesh} {}

  // Adds `share` of (1) in mesh.hpp; false: the host's GPUs share a switch or a bus, or no ring goes over direct links.
  bool add(const Host& host, double share, std::vector<Edge>& edges) {
    if (mesh_.empty()) return false;
    Host local = host;
    for (std::uint32_t& gpu : local) gpu %= mesh_.gpus;
    const auto [it, is_new] = found_.try_emplace(local);
    if (is_new) it->second = mesh_rings(mesh_, local);
    for (const MeshShare& pair : it->second) edges.push_back({host[pair.from], host[pair.to], share * pair.share});
    return !it->second.empty();
  }

 private:
  const HostMesh& mesh_;
  std::map<Host, std::vector<MeshShare>> found_;
};

// Of a ring, a chain that is cut at any one of m places keeps this part.
inline double chain_part(const Host& host) { return 1.0 - 1.0 / static_cast<double>(host.size()); }

}  // namespace stepcast::collective
