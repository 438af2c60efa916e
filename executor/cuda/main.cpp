// stepcast-cuda: plays a plan on GPUs, one process a worker. Needs CUDA, cuBLASLt and NCCL, nothing else. Exit status: 0 done, 2 bad
// input, 3 the system failed.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <thread>

#include "executor/common/measure.hpp"
#include "executor/common/model_payload.hpp"
#include "executor/common/place.hpp"
#include "executor/common/steps.hpp"
#include "executor/common/watch.hpp"
#include "executor/common/worker_program.hpp"
#include "executor/cuda/cuda_device.hpp"
#include "executor/cuda/cuda_math.hpp"
#include "executor/cuda/cuda_payload.hpp"
#include "executor/cuda/nvml.hpp"
#include "sim/base/diagnostic.hpp"

using namespace stepcast;
using namespace stepcast::executor;
using namespace stepcast::executor::cuda;

namespace {

constexpr const char* kName = "stepcast-cuda";

// All workers as one, by a communicator of their own.
class NcclTogether : public Together {
 public:
  NcclTogether(const ProcessPlace& place, Rendezvous& rendezvous) {
    STEPCAST_CUDA(cudaMalloc(&flag_, sizeof(float)));
    STEPCAST_CUDA(cudaMemset(flag_, 0, sizeof(float)));
    if (place.size < 2) return;
    ncclUniqueId id{};
    if (place.rank == 0) {
      STEPCAST_CUDA(ncclGetUniqueId(&id));
      rendezvous.put("everybody", {id.internal, sizeof id.internal});
    } else {
      rendezvous.get("everybody").copy(id.internal, sizeof id.internal);
    }
    STEPCAST_CUDA(ncclCommInitRank(&communicator_, static_cast<int>(place.size), id, static_cast<int>(place.rank)));
  }
  ~NcclTogether() override {
    if (communicator_ != nullptr) ncclCommDestroy(communicator_);
    cudaFree(flag_);
  }
  void barrier() override { anyone(false); }
  bool anyone(bool says) override {
    if (communicator_ == nullptr) return says;
    float value = says ? 1.0F : 0.0F;
    STEPCAST_CUDA(cudaMemcpyAsync(flag_, &value, sizeof value, cudaMemcpyHostToDevice, streams_[0]));
    STEPCAST_CUDA(ncclAllReduce(flag_, flag_, 1, ncclFloat, ncclMax, communicator_, streams_[0]));
    STEPCAST_CUDA(cudaMemcpyAsync(&value, flag_, sizeof value, cudaMemcpyDeviceToHost, streams_[0]));
    STEPCAST_CUDA(cudaStreamSynchronize(streams_[0]));
    return value > 0.0F;
  }

 private:
  Streams streams_{1};
  void* flag_ = nullptr;
  ncclComm_t communicator_ = nullptr;
};

// torchrun's environment, or what the command line says.
std::string rendezvous_address(const WorkerOptions& options) {
  if (!options.rendezvous.empty()) return options.rendezvous;
  const char* const host = std::getenv("MASTER_ADDR");
  const char* const port = std::getenv("MASTER_PORT");
  if (host != nullptr && port != nullptr) return std::string{"tcp:"} + host + ':' + port;
  return "file:" + options.records + ".rendezvous";
}

// What the driver says of the way to each other GPU of the host: "1: peer access, rank 0, native atomics; 2: none".
std::string links_of(int device) {
  int gpus = 0;
  STEPCAST_CUDA(cudaGetDeviceCount(&gpus));
  std::string text;
  for (int other = 0; other < gpus; ++other) {
    if (other == device) continue;
    int access = 0;
    int rank = 0;
    int atomics = 0;
    STEPCAST_CUDA(cudaDeviceGetP2PAttribute(&access, cudaDevP2PAttrAccessSupported, device, other));
    STEPCAST_CUDA(cudaDeviceGetP2PAttribute(&rank, cudaDevP2PAttrPerformanceRank, device, other));
    STEPCAST_CUDA(cudaDeviceGetP2PAttribute(&atomics, cudaDevP2PAttrNativeAtomicSupported, device, other));
    text += (text.empty() ? "" : "; ") + std::to_string(other) + ": " + (access != 0 ? "peer access, rank " + std::to_string(rank) : std::string{"none"}) + (atomics != 0 ? ", native atomics" : "");
  }
  return text.empty() ? "the only GPU" : text;
}

std::vector<std::pair<std::string, std::string>> facts_of(const ProcessPlace& place, const WorkerOptions& options, const PlayedPlan& played, const Nvml& nvml, bool shared) {
  int device = 0;
  STEPCAST_CUDA(cudaGetDevice(&device));
  cudaDeviceProp properties{};
  STEPCAST_CUDA(cudaGetDeviceProperties(&properties, device));
  int runtime = 0;
  STEPCAST_CUDA(cudaRuntimeGetVersion(&runtime));
  int nccl = 0;
  STEPCAST_CUDA(ncclGetVersion(&nccl));
  auto facts = facts_of_run(kName, place.rank, place.size, options, played);
  const auto add = [&](const char* name, std::string value) { facts.emplace_back(name, std::move(value)); };
  add("launcher", place.launcher);
  add("gpu", properties.name);
  add("gpu_memory_bytes", std::to_string(properties.totalGlobalMem));
  add("compute_capability", std::to_string(properties.major) + '.' + std::to_string(properties.minor));
  add("multiprocessors", std::to_string(properties.multiProcessorCount));
  char bus[32] = {};
  STEPCAST_CUDA(cudaDeviceGetPCIBusId(bus, sizeof bus, device));
  add("gpu_index", std::to_string(device));
  add("gpu_bus", bus);
  add("gpu_links", links_of(device));
  const GpuReading now = nvml.read();
  if (now.sm_mhz) add("sm_clock_mhz", std::to_string(*now.sm_mhz));
  if (now.memory_mhz) add("memory_clock_mhz", std::to_string(*now.memory_mhz));
  add("driver", nvml.driver());
  add("cuda", std::to_string(runtime));
  add("nccl", std::to_string(nccl));
  add("collectives", "NCCL's choice");
  add("shared_gpu", shared ? "yes" : "no");
  add("threads", std::to_string(options.threads));
  if (const auto limit = nvml.power_limit_mw()) add("power_limit_mw", std::to_string(*limit));
  return facts;
}

Readings readings_of(const Nvml& nvml) {
  const GpuReading now = nvml.read();
  Readings readings;
  if (now.sm_mhz) readings.emplace_back("clock_mhz", *now.sm_mhz);
  if (now.memory_mhz) readings.emplace_back("memory_clock_mhz", *now.memory_mhz);
  if (now.power_mw) readings.emplace_back("power_w", *now.power_mw * 1e-3);
  if (now.temperature_c) readings.emplace_back("temperature_c", *now.temperature_c);
  if (now.throttle_reasons) readings.emplace_back("throttle_reasons", static_cast<double>(*now.throttle_reasons));
  return readings;
}

// Throws UserError where there are none: run_worker() prints it for rank 0, and each other host's first worker says it here.
int gpus_here(const ProcessPlace& place) {
  int gpus = 0;
  const cudaError_t status = cudaGetDeviceCount(&gpus);
  if (status == cudaSuccess && gpus > 0) return gpus;
  const UserError none{Diagnostic{.path = kName, .problem = "no GPU is here", .expected = "a GPU and its driver on each host of a worker", .got = status == cudaSuccess ? "none" : cudaGetErrorString(status),
                                  .hint = "stepcast run --backend cpu plays small plans without"}};
  if (place.rank > 0) {
    if (place.local_rank == 0) std::cerr << none.what() << std::endl;
    std::this_thread::sleep_for(std::chrono::seconds{2});  // launchers end all when one ends: rank 0 is to speak first
  }
  throw none;
}

void run(const ProcessPlace& place, const WorkerOptions& options) {
  const PlayedPlan played = read_played_plan(options, place.size);
  const plan::Plan& plan = played.plan;
  const int gpus = gpus_here(place);
  const bool shared = static_cast<int>(place.local_rank) >= gpus || options.share_gpu;
  // NCCL takes two processes on one GPU for a mistake, unless they seem to be on two hosts: then they talk over sockets, as hosts do.
  if (shared) ::setenv("NCCL_HOSTID", ("stepcast-" + std::to_string(place.rank)).c_str(), 1);
  STEPCAST_CUDA(cudaSetDevice(static_cast<int>(place.local_rank) % gpus));
  char bus[32] = {};
  STEPCAST_CUDA(cudaDeviceGetPCIBusId(bus, sizeof bus, static_cast<int>(place.local_rank) % gpus));
  const Nvml nvml{bus};

  RecordWriter records{options.records + '.' + std::to_string(place.rank) + ".records"};
  records.facts(facts_of(place, options, played, nvml, shared));
  const std::unique_ptr<Rendezvous> rendezvous = make_rendezvous(rendezvous_address(options), place.rank, std::chrono::seconds{options.timeout_s});
  // Watches over the joining of communicators too: it waits for ever where a worker is gone.
  std::atomic<const CudaDevice*> playing{nullptr};
  const auto standing = [&] {
    const CudaDevice* const at = playing.load();
    return at != nullptr ? at->standing() : std::vector<std::string>{"joining the other workers' communicators"};
  };
  std::optional<Watch> watch;
  watch.emplace(std::string{kName} + ": rank " + std::to_string(place.rank), std::chrono::seconds{options.timeout_s}, standing, [] { std::_Exit(3); });
  const RankId rank{place.rank};
  const plan::Program& program = plan.program(rank);
  const Streams streams{program.streams.size()};
  Matmul matmul{program.streams.size()};
  NcclTogether together{place, *rendezvous};
  Communicators communicators{plan, rank, *rendezvous};
  CudaMath math{streams, matmul};
  const auto seed = static_cast<std::uint64_t>(options.seed);
  cudnn::AttentionLibrary library = cudnn::AttentionLibrary::find();
  std::unique_ptr<Payload> payload;
  std::string attention = "our own kernel, row by row in fp32";
  if (options.train) {
    payload = std::make_unique<ModelPayload>(plan, rank, options.plan, math, seed);
  } else {
    auto random = std::make_unique<CudaPayload>(program, streams, matmul, library, seed + place.rank, static_cast<int>(options.threads));
    attention = random->attention_account();
    payload = std::move(random);
  }
  records.facts({{"attention", attention}});
  CudaDevice device{plan, rank, streams, communicators, *payload, options.memory};
  try {
    watch->step_ended();
    if (options.measure) {
      watch.reset();  // points take their time
      measure_points(program, device, together, {.budget_s = options.point_budget_s}, 0, [&] { return readings_of(nvml); }, records);
    } else {
      playing = &device;
      run_steps(program, device, *payload, together, options, 0, records, [&] { watch->step_ended(); });
      watch.reset();
    }
    records.facts({{"peak_memory_bytes", std::to_string(device.peak_memory().count())}});
    meet(*rendezvous, "end", place.rank, place.size);
  } catch (const std::exception& error) {
    end_at_once(kName, place.rank, error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments{argv + 1, argv + argc};
  std::optional<ProcessPlace> place;
  const auto work = [&] {
    place = find_place();
    run(*place, parse_worker_options(kName, arguments));
  };
  return run_worker(kName, arguments, work, [&] { return place ? std::optional{place->rank} : std::nullopt; });
}
