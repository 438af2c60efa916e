// calibration/profile.hpp — a calibration profile as plain structs: every fitted or quoted number that
// the models need beside the catalogue, each with its kind of evidence and its source, and where they are
// known its standard deviation (`plus_minus`, in the figure's unit) and the day of the evidence (`date`).
// One file a GPU type in calibration/profiles/; it holds for all scenarios of that hardware. Each struct
// lists its keys once, in visit(), for the reader of sim/scenario; profile_parameters.hpp finds figures by key.
//
// Rates inside the chip are in bytes per clock and SM, so that a profile can stand in for a relative
// of its GPU that has more SMs or another clock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calibration/collective_profile.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/units.hpp"
#include "sim/scenario/key.hpp"
#include "topologies/hardware.hpp"

namespace stepcast::calibration {

template <class T>
using Figure = topology::Figure<T>;
using Sizes = std::vector<std::int64_t>;

struct MemoryProfile {
  Figure<double> streaming_efficiency;
  Figure<double> reduction_efficiency;
  Figure<double> l2_bytes_per_clock;
  template <class V>
  void visit(V& v) {
    v.key("streaming_efficiency", streaming_efficiency, "Share of the data-sheet memory bandwidth that large elementwise kernels reach.", scenario::required().between(0.05, 1));
    v.key("reduction_efficiency", reduction_efficiency, "The same for kernels that reduce rows: norm, softmax, loss.", scenario::required().between(0.05, 1));
    v.key("l2_bytes_per_clock", l2_bytes_per_clock, "Bytes per clock and SM of streams that stay in L2.", scenario::required().above(0));
  }
};

struct TileProfile {
  Sizes rows;
  Sizes columns;
  std::int64_t largest_area = 0;
  bool split_k = true;
  std::string source;
  template <class V>
  void visit(V& v) {
    v.key("rows", rows, "Tile heights in elements of C.", scenario::required().not_empty().at_least(1));
    v.key("columns", columns, "Tile widths in elements of C.", scenario::required().not_empty().at_least(1));
    v.key("largest_area", largest_area, "Elements of C that the accumulators of one SM hold.", scenario::required().at_least(1));
    v.key("split_k", split_k, "Whether the library cuts k when there are fewer tiles than SMs.");
    v.key("source", source, "Where the list comes from.", scenario::required().not_empty());
  }
};

struct GemmProfile {
  TileProfile tiles;
  TileProfile fp8_tiles;
  Figure<double> mma_efficiency;
  Figure<double> fp8_mma_efficiency;
  std::optional<Figure<double>> fp8_library_mma_efficiency;
  Figure<double> memory_efficiency;
  Figure<double> operand_bytes_per_clock;
  Figure<double> sm_bytes_per_clock;
  Figure<Duration> tile_overhead;
  Figure<Duration> split_k_cost;
  template <class V>
  void visit(V& v) {
    v.key("tiles", tiles, "Tiles of 16-bit, TF32 and fp32 products.", scenario::required());
    v.key("fp8_tiles", fp8_tiles, "Tiles of fp8 products.", scenario::required());
    v.key("mma_efficiency", mma_efficiency, "Share of the tensor peak while the main loop runs.", scenario::required().between(0.05, 1.1));
    v.key("fp8_mma_efficiency", fp8_mma_efficiency, "The same for fp8 inputs.", scenario::required().between(0.05, 1.1));
    v.key("fp8_library_mma_efficiency", fp8_library_mma_efficiency,
          "The same for the matrix library's own fp8 products, which training calls, on the tiles of 16-bit ones. Default: fp8_mma_efficiency and fp8_tiles.", scenario::between(0.05, 1.1));
    v.key("memory_efficiency", memory_efficiency, "Share of the memory bandwidth while operands stream.", scenario::required().between(0.05, 1));
    v.key("operand_bytes_per_clock", operand_bytes_per_clock, "Operand bytes per clock and SM with all SMs at work.", scenario::required().above(0));
    v.key("sm_bytes_per_clock", sm_bytes_per_clock, "Operand bytes per clock that one SM draws at most.", scenario::required().above(0));
    v.key("tile_overhead", tile_overhead, "Fill and epilogue of a tile of 128 x 256 that nothing hides.", scenario::required().at_least(0));
    v.key("split_k_cost", split_k_cost, "The second pass over C when k is split.", scenario::required().at_least(0));
  }
};

struct AttentionProfile {
  Figure<std::int64_t> query_block;
  Figure<std::int64_t> key_block;
  Figure<double> mma_efficiency;
  Figure<double> backward_mma_efficiency;
  Figure<double> scores_per_clock;
  Figure<double> softmax_overlap;
  Figure<Duration> block_overhead;
  std::optional<Figure<double>> tail_share;
  std::optional<Figure<Duration>> engine_overhead;
  std::optional<Figure<double>> cache_efficiency;
  std::optional<Figure<double>> vllm_rate;
  std::optional<Figure<Duration>> vllm_overhead;
  std::optional<Figure<double>> vllm_cache_efficiency;
  template <class V>
  void visit(V& v) {
    v.key("query_block", query_block, "Queries of one work item.", scenario::required().at_least(1));
    v.key("key_block", key_block, "Keys of one step.", scenario::required().at_least(1));
    v.key("mma_efficiency", mma_efficiency, "Share of the tensor peak while the forward loop runs.", scenario::required().between(0.05, 1.1));
    v.key("backward_mma_efficiency", backward_mma_efficiency, "The same backward.", scenario::required().between(0.05, 1.1));
    v.key("scores_per_clock", scores_per_clock, "Softmax scores that one SM finishes per clock.", scenario::required().above(0));
    v.key("softmax_overlap", softmax_overlap, "Share of the shorter of softmax and products that is hidden.", scenario::required().between(0, 1));
    v.key("block_overhead", block_overhead, "Start and end of one work item.", scenario::required().at_least(0));
    v.key("tail_share", tail_share, "Share of the longest work item for which SMs idle at the end: 0 where longest items go first, 1 where items go in the grid's order. Default: 0.", scenario::between(0, 1));
    v.key("engine_overhead", engine_overhead, "What a serving engine's call does around attention (cache, metadata), whose tables time it; training does not. Default: two kernels.", scenario::at_least(0));
    v.key("cache_efficiency", cache_efficiency, "Share of the streaming bandwidth at which such an engine writes keys and values into its paged cache. Default: 1.", scenario::between(0.02, 1));
    v.key("vllm_rate", vllm_rate, "Rate of vLLM's attention kernels over those that the other figures describe. Default: 1.", scenario::between(0.1, 3));
    v.key("vllm_overhead", vllm_overhead, "engine_overhead of vLLM. Default: the same.", scenario::at_least(0));
    v.key("vllm_cache_efficiency", vllm_cache_efficiency, "cache_efficiency of vLLM. Default: the same.", scenario::between(0.02, 1));
  }
};

struct OverheadProfile {
  Figure<Duration> kernel_latency;
  Figure<Duration> kernel_gap;
  Figure<Duration> host_launch;
  Figure<Duration> host_collective;
  std::optional<Figure<Duration>> collective_wait;
  std::optional<Figure<Duration>> host_recompute;
  std::optional<Figure<Duration>> host_step;
  Figure<Bytes> context;
  Figure<Bytes> gemm_workspace;
  template <class V>
  void visit(V& v) {
    v.key("kernel_latency", kernel_latency, "A kernel that does nothing, start to end on the device.", scenario::required().at_least(0));
    v.key("kernel_gap", kernel_gap, "Idle between two queued kernels of one stream.", scenario::required().at_least(0));
    v.key("host_launch", host_launch, "Host time per kernel, framework included.", scenario::required().at_least(0));
    v.key("host_collective", host_collective, "Host time per collective, send or receive, framework included.", scenario::required().at_least(0));
    v.key("collective_wait", collective_wait, "Device time of a collective beyond its own: streams that wait for each other, ranks that are not there together. Default: 0.", scenario::at_least(0));
    v.key("host_recompute", host_recompute, "Host time of a block that is computed again, beside its kernels: saving and setting random-number states, a backward pass within the backward pass. Default: 0.", scenario::at_least(0));
    v.key("host_step", host_step, "Host time of a step before its first kernel: the batch and its broadcast, logging. Default: 0.", scenario::at_least(0));
    v.key("context", context, "Device memory of the context and the libraries' code.", scenario::required().at_least(0));
    v.key("gemm_workspace", gemm_workspace, "Device memory of the matrix library's workspace.", scenario::required().at_least(0));
  }
};

struct ClockProfile {
  Figure<double> sustained_fraction;
  Figure<Duration> power_response;
  std::optional<Figure<double>> attention_fraction;
  std::optional<Figure<Power>> power_per_sm;
  template <class V>
  void visit(V& v) {
    v.key("sustained_fraction", sustained_fraction, "Clock in steady state under tensor load over that of short runs, which GeForce cards quote below what they reach.", scenario::required().between(0.3, 1.2));
    v.key("attention_fraction", attention_fraction, "The same under fused attention, forward, whose tensor cores wait for softmax and draw less. Default: sustained_fraction.", scenario::between(0.3, 1));
    v.key("power_response", power_response, "Run time at which the clock is half way down to the sustained one.", scenario::required().at_least(0));
    v.key("power_per_sm", power_per_sm, "Power limit over SMs of the GPU measured: one of another limit sustains another clock. Default: it does not matter.", scenario::above(0));
  }
};

// A time that grows with the bytes: latency + bytes / bandwidth. Copies, storage, Adam on the host, collectives as a whole.
struct MeasuredCost {
  std::string what;
  Figure<Duration> latency;
  Figure<Bandwidth> bandwidth;
  Bytes least;
  Bytes most;
  template <class V>
  void visit(V& v) {
    v.key("what", what, "What is timed, and among how many workers.", scenario::required().not_empty());
    v.key("latency", latency, "Time of the least.", scenario::required().at_least(0));
    v.key("bandwidth", bandwidth, "Bytes over further time.", scenario::required().above(0));
    v.key("least", least, "The smallest that was measured.", scenario::required().at_least(0));
    v.key("most", most, "The largest.", scenario::required().at_least(0));
  }
};

// How much longer something takes beside something else.
struct Interference {
  std::string what;
  Figure<double> slowdown;
  std::optional<std::string> kernels{};
  std::optional<std::int64_t> workers{};
  std::optional<std::string> beside{};
  template <class V>
  void visit(V& v) {
    v.key("what", what, "What is slowed by what.", scenario::required().not_empty());
    v.key("slowdown", slowdown, "Time beside it over time alone.", scenario::required().between(0.01, 100));
    v.key("kernels", kernels, "What is slowed, as in fitted_on. Default: forecasts do not use the figure.", scenario::words({"products", "fp8 products", "attention", "attention backward", "streams", "reductions"}));
    v.key("workers", workers, "Workers of the host that run at once.", scenario::at_least(1));
    v.key("beside", beside, "A collective or copy that runs beside them. Default: the same kernels of the other workers.");
  }
};

// Where measured kernels lie: beyond it, forecasts rest on the model's form alone.
struct FittedRange {
  std::string kernels;
  std::int64_t points = 0;
  std::optional<Flops> least_work;
  std::optional<Flops> most_work;
  std::optional<Bytes> least_bytes;
  std::optional<Bytes> most_bytes;
  std::optional<std::int64_t> least_ranks{};
  std::optional<std::int64_t> most_ranks{};
  template <class V>
  void visit(V& v) {
    v.key("kernels", kernels, "Products, attention, streams ..., or a collective inside a host or between hosts.", scenario::required().not_empty());
    v.key("points", points, "How many were fitted.", scenario::required().at_least(1));
    v.key("least_work", least_work, "Operations of the smallest product or attention.", scenario::above(0));
    v.key("most_work", most_work, "Operations of the largest.", scenario::above(0));
    v.key("least_bytes", least_bytes, "Bytes of the smallest stream, reduction or collective.", scenario::at_least(0));
    v.key("most_bytes", most_bytes, "Bytes of the largest.", scenario::at_least(0));
    v.key("least_ranks", least_ranks, "Ranks of the smallest collective.", scenario::at_least(2));
    v.key("most_ranks", most_ranks, "Ranks of the largest.", scenario::at_least(2));
  }
};

struct Profile {
  std::int64_t schema = 1;
  std::string name;
  std::vector<std::string> gpus;
  std::vector<std::string> architectures;
  std::string note;
  MemoryProfile memory;
  GemmProfile gemm;
  AttentionProfile attention;
  OverheadProfile overhead;
  ClockProfile clock;
  std::optional<LocalCollectives> collectives;
  std::optional<NetworkCollectives> network_collectives;
  std::vector<MeasuredCost> costs;
  std::vector<Interference> interference;
  std::vector<FittedRange> fitted_on;
  template <class V>
  void visit(V& v) {
    v.key("schema", schema, "Format version.", scenario::only_version(1));
    v.key("name", name, "Profile name.", scenario::required().not_empty());
    v.key("gpus", gpus, "Catalogue names or aliases of the GPUs that it describes.");
    v.key("architectures", architectures, "Architectures that it stands in for where a GPU has no own profile.");
    v.key("note", note, "What to know before use.");
    v.key("memory", memory, "Kernels that only move data.", scenario::required());
    v.key("gemm", gemm, "Matrix products.", scenario::required());
    v.key("attention", attention, "Fused attention.", scenario::required());
    v.key("overhead", overhead, "Fixed costs.", scenario::required());
    v.key("clock", clock, "What the power limit leaves of the clock.", scenario::required());
    v.key("collectives", collectives, "Collectives inside a host. Default: NCCL's own constants.");
    v.key("network_collectives", network_collectives, "Collectives between hosts over the NICs that it names. Default: the profile of the NIC.");
    v.key("costs", costs, "What `stepcast calibrate --db` measured of copies, storage, Adam on the host and collectives as a whole. Forecasts use copy: what a message costs that came before its receive.");
    v.key("interference", interference, "How workers at once, and collectives beside kernels, slow each other.");
    v.key("fitted_on", fitted_on, "The range of kernels that the figures were fitted on. Default: not stated.");
  }
};

// A profile chosen for a GPU. `own`: it names this GPU; otherwise it was chosen for its architecture,
// and a summary says "assumed".
struct ChosenProfile {
  Profile profile;
  bool own = false;
};

// A profile's text; every mistake is added to `diagnostics`, of single keys and of what they are to each other.
Profile read_profile_text(const std::string& text, const std::string& path, Diagnostics& diagnostics);
// Throws UserError with all mistakes of the file.
Profile read_profile(const std::string& path);

// Reads every *.yaml of a folder, in order of file name. Throws UserError with all mistakes.
std::vector<Profile> read_profiles(const std::string& folder);

// The profile that names the GPU (by name or alias), else one that stands in for its architecture, else
// the one that stands in for "any". Throws UserError when there is none.
ChosenProfile choose_profile(const std::vector<Profile>& profiles, const topology::Gpu& gpu);

}  // namespace stepcast::calibration
