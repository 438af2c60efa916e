// sim/run/result.hpp — what a simulated step cost: the numbers behind the summary and the JSON.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/base/units.hpp"
#include "sim/plan/program.hpp"
#include "sim/trace/record.hpp"

namespace stepcast::run {

// Where the critical worker's step went. The parts add up to the step time, to the picosecond.
struct Breakdown {
  Duration compute;          // forward, recompute and backward kernels, launch gaps included
  Duration exposed_tp;       // compute stream waiting for that traffic
  Duration exposed_pp;
  Duration exposed_dp;
  Duration exposed_ep;
  Duration exposed_cp;
  Duration exposed_offload;
  Duration input_wait;
  Duration optimizer;
  Duration bubble;           // waiting for a pipeline neighbour to have something to send
  Duration host_wait;        // stream empty: the host had not launched the next kernel yet
  [[nodiscard]] Duration total() const;
};

using BytesByCategory = std::array<Bytes, plan::kCategoryCount>;

// Peak device memory of one worker, read off its program's Alloc/Free sequence.
struct MemoryPeak {
  plan::ProgramId program;
  RankId worker;                   // a worker that runs it
  Bytes total;                     // everything below
  Bytes context;                   // CUDA context and libraries
  Bytes communicators;             // NCCL buffers
  Bytes fragmentation;             // reserved by the allocator beyond what is live at the peak
  BytesByCategory by_category{};   // live at the peak, after rounding
  std::size_t instruction = 0;     // index in the program at which the peak is reached
};

// What a link carried, for the busiest-link list.
struct LinkLoad {
  std::string name;
  double utilisation = 0.0;        // bytes over capacity x step time
  Bytes carried;
};

struct Result {
  Duration step;
  RankId critical_worker;          // finishes last (lowest rank on ties)
  Breakdown breakdown;             // of the critical worker
  std::vector<MemoryPeak> memory;  // one a program, program order
  std::vector<LinkLoad> busiest_links;
  Duration socket_time;            // core time that sockets take of the busiest CPU socket; 0: no traffic over sockets
  std::uint64_t events = 0;
  std::int64_t workers_simulated = 0;
  bool folded = false;
  std::string fold_note;           // why workers were not folded, or would not be were it not asked for
  std::uint64_t order_fingerprint = 0;
  std::uint64_t results_fingerprint = 0;
  trace::Recording recording;      // empty unless asked for
};

}  // namespace stepcast::run
