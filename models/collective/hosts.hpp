// models/collective/hosts.hpp — members of a group sorted by host, and the binary trees over hosts: what the
// algorithms' edges are laid on. Internal to models/collective.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/collective/edges.hpp"

namespace stepcast::collective {

using Host = std::vector<std::uint32_t>;  // GPUs of the group on one host, in rank order

// Hosts in the order in which the ranks first touch them.
std::vector<Host> by_host(std::span<const Member> members);

// One channel a local rank where every host has that many; hosts with fewer reuse theirs.
std::size_t channel_count(const std::vector<Host>& hosts);

// The GPU through which a channel enters and leaves a host.
inline std::uint32_t network_gpu(const Host& host, std::size_t channel) { return host[channel % host.size()]; }

// Parents in a binary tree over labels 0..count-1 whose odd labels are all leaves: label i hangs below
// the label that clears its lowest set bit and sets the next one (or, past the end, only clears it).
// The root's parent is `count`.
std::vector<std::size_t> tree_parents(std::size_t count);

// Host behind a label. The second tree flips parity, so its leaves are the first one's inner nodes:
// mirrored for an even count, shifted by one for an odd count.
std::size_t host_of_label(std::size_t label, std::size_t tree, std::size_t count);

// Algorithms in files of their own.
std::vector<Edge> nvls_edges(std::span<const Member> members);
std::vector<Edge> nvls_tree_edges(std::span<const Member> members);
std::vector<Edge> collnet_edges(std::span<const Member> members);
std::vector<Edge> pat_edges(std::span<const Member> members);
std::vector<Edge> pxn_edges(std::span<const Member> members, const Volumes& volumes);
std::vector<Edge> pxn_shift_edges(std::span<const Member> members);
std::vector<Edge> hierarchical_edges(std::span<const Member> members, const HostMesh& mesh);

}  // namespace stepcast::collective
