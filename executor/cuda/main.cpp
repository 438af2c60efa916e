// stepcast-cuda: plays a plan on GPUs, one process a worker. Needs CUDA, cuBLASLt and NCCL, nothing else. Exit status: 0 done, 2 bad
// input, 3 the system failed.
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <memory>

#include "executor/common/fewer_workers.hpp"
#include "executor/common/machine_facts.hpp"
#include "executor/common/measure.hpp"
#include "executor/common/model_payload.hpp"
#include "executor/common/place.hpp"
#include "executor/common/shrink.hpp"
#include "executor/common/steps.hpp"
#include "executor/common/watch.hpp"
#include "executor/cuda/cuda_device.hpp"
#include "executor/cuda/cuda_math.hpp"
#include "executor/cuda/cuda_payload.hpp"
#include "executor/cuda/nvml.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"
#include "sim/plan/plan_file.hpp"

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

std::vector<std::pair<std::string, std::string>> facts_of(const ProcessPlace& place, const WorkerOptions& options, const std::string& plan, const Nvml& nvml, bool shared) {
  int device = 0;
  STEPCAST_CUDA(cudaGetDevice(&device));
  cudaDeviceProp properties{};
  STEPCAST_CUDA(cudaGetDeviceProperties(&properties, device));
  int runtime = 0;
  STEPCAST_CUDA(cudaRuntimeGetVersion(&runtime));
  int nccl = 0;
  STEPCAST_CUDA(ncclGetVersion(&nccl));
  std::vector<std::pair<std::string, std::string>> facts{{"worker", kName},
                                                         {"rank", std::to_string(place.rank)},
                                                         {"workers", std::to_string(place.size)},
                                                         {"launcher", place.launcher},
                                                         {"plan", text_hash(plan)},
                                                         {"gpu", properties.name},
                                                         {"gpu_memory_bytes", std::to_string(properties.totalGlobalMem)},
                                                         {"compute_capability", std::to_string(properties.major) + '.' + std::to_string(properties.minor)},
                                                         {"multiprocessors", std::to_string(properties.multiProcessorCount)},
                                                         {"driver", nvml.driver()},
                                                         {"cuda", std::to_string(runtime)},
                                                         {"nccl", std::to_string(nccl)},
                                                         {"collectives", "NCCL's choice"},
                                                         {"shared_gpu", shared ? "yes" : "no"},
                                                         {"threads", "1"},
                                                         {"data", options.train ? "a model that learns" : "random"},
                                                         {"shrink", std::to_string(options.shrink)}};
  if (const auto limit = nvml.power_limit_mw()) facts.emplace_back("power_limit_mw", std::to_string(*limit));
  for (auto& fact : machine_facts()) facts.push_back(std::move(fact));
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

void run(const ProcessPlace& place, const WorkerOptions& options) {
  const std::string text = read_file(options.plan);
  const plan::Plan whole = shrink(plan::from_file_text(text, options.plan), options.shrink);
  const FewerWorkers fewer = options.fewer ? on_fewer(whole, static_cast<std::int32_t>(place.size)) : FewerWorkers{whole, {}};
  const plan::Plan& plan = fewer.plan;
  if (static_cast<std::uint32_t>(plan.world_size()) != place.size) {
    throw UserError(Diagnostic{.where = {options.plan, 0, 0}, .problem = "another number of workers than processes",
                               .expected = std::to_string(plan.world_size()) + " processes", .got = std::to_string(place.size)});
  }
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) throw SystemError("no GPU is here");
  const bool shared = static_cast<int>(place.local_rank) >= gpus || options.share_gpu;
  // NCCL takes two processes on one GPU for a mistake, unless they seem to be on two hosts: then they talk over sockets, as hosts do.
  if (shared) ::setenv("NCCL_HOSTID", ("stepcast-" + std::to_string(place.rank)).c_str(), 1);
  STEPCAST_CUDA(cudaSetDevice(static_cast<int>(place.local_rank) % gpus));
  char bus[32] = {};
  STEPCAST_CUDA(cudaDeviceGetPCIBusId(bus, sizeof bus, static_cast<int>(place.local_rank) % gpus));
  const Nvml nvml{bus};

  RecordWriter records{options.records + '.' + std::to_string(place.rank) + ".records"};
  records.facts(facts_of(place, options, text, nvml, shared));
  if (!fewer.note.empty()) records.facts({{"fewer", fewer.note}});
  const std::unique_ptr<Rendezvous> rendezvous = make_rendezvous(rendezvous_address(options), place.rank, std::chrono::seconds{options.timeout_s});
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
    auto random = std::make_unique<CudaPayload>(program, streams, matmul, library, seed + place.rank);
    attention = random->attention_account();
    payload = std::move(random);
  }
  records.facts({{"attention", attention}});
  CudaDevice device{plan, rank, streams, communicators, *payload, options.memory};
  if (options.measure) {
    measure_points(program, device, together, {.budget_s = options.point_budget_s}, 0, [&] { return readings_of(nvml); }, records);
  } else {
    Watch watch{std::string{kName} + ": rank " + std::to_string(place.rank), std::chrono::seconds{options.timeout_s}, [&] { return device.standing(); }, [] { std::_Exit(3); }};
    run_steps(program, device, *payload, together, options, 0, records, [&] { watch.step_ended(); });
  }
  records.facts({{"peak_memory_bytes", std::to_string(device.peak_memory().count())}});
  meet(*rendezvous, "end", place.rank, place.size);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments{argv + 1, argv + argc};
  for (const std::string& word : arguments) {
    if (word == "-h" || word == "--help") {
      std::cout << worker_usage(kName);
      return 0;
    }
  }
  ProcessPlace place;
  try {
    place = find_place();
    run(place, parse_worker_options(kName, arguments));
    return 0;
  } catch (const UserError& error) {
    if (place.rank == 0) std::cerr << error.what() << '\n';
    return 2;
  } catch (const std::exception& error) {
    std::cerr << kName << ": rank " << place.rank << ": " << error.what() << std::endl;
    std::_Exit(3);  // communicators that wait for others would hang in their destructors
  }
}
