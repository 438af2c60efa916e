// sim/run/host_work.hpp — what a step does with the memory of its host: copies over PCIe (or a chip-to-chip link), and work of the cores on
// what lies there, such as an offloaded optimizer.
//
// Model    A copy of B bytes is a flow of B bytes over the GPU's links to the memory of its socket, which it shares with everything else that
//          crosses them: the other GPUs behind the PCIe switch, traffic of NICs, collectives without peer-to-peer. It begins kCopyLatency
//          after its stream has come to it.
//          Work of the cores that moves B bytes to and from memory is a flow of B / kCoresOfMemory over the socket's memory bus: GPUs of a
//          socket share its bandwidth.                                                                                              (1)
// Source   kCopyLatency: a pinned copy of 1000 bytes at 0.4 GB/s, microsoft/superbenchmark tests/data (bandwidthTest)
//          kCoresOfMemory: DeepSpeed's CPU Adam at 30 bytes a parameter moves 303 to 312 GB/s of GH200's 512 (DeepSpeed blogs/superoffload),
//          100 to 136 of the DGX-2's 256 (ZeRO-Offload, table 4): 0.6 and 0.46
// Valid    transfers of some hundred KB and up; hosts with cores enough to draw their memory's bandwidth
// Ignores  cores as a resource of their own, memory of the other socket, pageable memory (twice through the bus), kernels slowed by copies
// Tests    unit/host_work_test
#pragma once

#include <cstdint>
#include <optional>

#include "sim/plan/instruction.hpp"

namespace stepcast::run {

enum class HostWork : std::uint8_t { kToDevice, kToHost, kCores };

inline constexpr Duration kCopyLatency = Duration::picoseconds(2'500'000);
inline constexpr double kCoresOfMemory = 0.5;  // [1] of peak bandwidth

// Nothing for what is no such work: copies within the device, files.
std::optional<HostWork> host_work(const plan::Body& body);
// [B] that its flow moves. Requires: host_work(body).
double flow_bytes(const plan::Body& body);

}  // namespace stepcast::run
