#include "executor/cuda/cuda_device.hpp"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "executor/cuda/kernels.hpp"

namespace stepcast::executor::cuda {
namespace {

std::size_t timed_instructions(const plan::Program& program) {
  return static_cast<std::size_t>(std::count_if(program.instructions.begin(), program.instructions.end(), [](const plan::Instruction& i) { return takes_time(i.body); }));
}

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

CudaDevice::CudaDevice(const plan::Plan& plan, RankId rank, const Streams& streams, Communicators& communicators, Payload& payload, Bytes memory_limit)
    : plan_{plan}, program_{plan.program(rank)}, streams_{streams}, communicators_{communicators}, payload_{payload}, limit_{memory_limit},
      blocks_(program_.buffers.size(), nullptr), events_{program_.event_count, cudaEventDisableTiming}, timings_(program_.instructions.size()),
      marks_{2 * timed_instructions(program_), cudaEventDefault}, origin_{1, cudaEventDefault}, intervals_(program_.instructions.size()) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < timings_.size(); ++i) {
    if (!takes_time(program_.instructions[i].body)) continue;
    timings_[i] = Timing{next, next + 1};
    next += 2;
  }
  STEPCAST_CUDA(cudaHostAlloc(&released_, sizeof(int), cudaHostAllocMapped));
  *released_ = 1;
  // Blocks stay with the pool between steps.
  cudaMemPool_t pool = nullptr;
  int device = 0;
  STEPCAST_CUDA(cudaGetDevice(&device));
  STEPCAST_CUDA(cudaDeviceGetDefaultMemPool(&pool, device));
  std::uint64_t threshold = UINT64_MAX;
  STEPCAST_CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
}

CudaDevice::~CudaDevice() {
  cudaDeviceSynchronize();
  for (void* block : blocks_) {
    if (block != nullptr) cudaFree(block);
  }
  cudaFreeHost(released_);
}

void CudaDevice::begin_step() {
  for (std::uint32_t b = 0; b < blocks_.size(); ++b) {
    if (blocks_[b] != nullptr) give(plan::BufferId{b}, streams_[0]);
  }
  STEPCAST_CUDA(cudaDeviceSynchronize());
  payload_.begin_step();
  for (const std::size_t i : issued_) intervals_[i] = {};
  issued_.clear();
  STEPCAST_CUDA(cudaEventRecord(origin_[0], streams_[0]));
  STEPCAST_CUDA(cudaEventSynchronize(origin_[0]));
  origin_ns_ = now_ns();
}

void CudaDevice::hold() {
  *static_cast<volatile int*>(released_) = 0;
  for (std::size_t s = 0; s < streams_.size(); ++s) hold_stream(streams_[s], released_);
}

void CudaDevice::issue(std::size_t index) {
  const cudaStream_t stream = streams_[program_.instructions[index].stream.index()];
  const std::optional<Timing>& timing = timings_[index];
  if (timing) STEPCAST_CUDA(cudaEventRecord(marks_[timing->begin], stream));
  run(index, stream);
  if (!timing) return;
  STEPCAST_CUDA(cudaEventRecord(marks_[timing->end], stream));
  issued_.push_back(index);
}

void CudaDevice::run(std::size_t index, cudaStream_t stream) {
  struct Run {
    CudaDevice& d;
    std::size_t i;
    cudaStream_t stream;
    void operator()(const plan::Compute&) const { d.payload_.compute(i); }
    void operator()(const plan::Collective& c) const {
      const bool lands = c.kind == plan::CollectiveKind::kAllToAll || c.kind == plan::CollectiveKind::kSendReceive;
      d.communicators_.collective(c, d.payload_.reduction(i), d.payload_.collective(i), lands ? d.payload_.landing(i) : std::span<std::byte>{}, stream);
      d.payload_.collected(i);
    }
    void operator()(const plan::Send& s) const { d.communicators_.send(s.peer_stage, d.payload_.outgoing(i), stream); }
    void operator()(const plan::Recv& r) const {
      d.communicators_.receive(r.peer_stage, d.payload_.incoming(i), stream);
      d.payload_.received(i);
    }
    void operator()(const plan::Copy&) const { d.payload_.copy(i); }
    void operator()(const plan::HostCompute&) const { d.payload_.host_compute(i); }
    void operator()(const plan::LoadBatch&) const { d.payload_.load_batch(i); }
    void operator()(const plan::Alloc& a) const { d.take(a.buffer, stream); }
    void operator()(const plan::Free& f) const {
      d.payload_.freed(i);
      d.give(f.buffer, stream);
    }
    void operator()(const plan::Record& r) const { STEPCAST_CUDA(cudaEventRecord(d.events_[r.event.index()], stream)); }
    // The host's own stream: it waits itself, before it issues more.
    void operator()(const plan::Wait& w) const {
      const plan::StreamId where = d.program_.instructions[i].stream;
      if (d.program_.streams[where.index()].kind == plan::StreamKind::kIssue) STEPCAST_CUDA(cudaEventSynchronize(d.events_[w.event.index()]));
      else STEPCAST_CUDA(cudaStreamWaitEvent(stream, d.events_[w.event.index()], 0));
    }
  };
  std::visit(Run{*this, index, stream}, program_.instructions[index].body);
}

void CudaDevice::take(plan::BufferId buffer, cudaStream_t stream) {
  const plan::Buffer& wanted = program_.buffers[buffer.index()];
  if (wanted.memory != plan::Memory::kDevice) return;  // host memory is the payload's
  if (used_ + wanted.size > limit_) {
    throw SystemError("out of memory: " + std::to_string(wanted.size.count()) + " bytes more than the " + std::to_string(used_.count()) +
                      " in use are above the limit of " + std::to_string(limit_.count()) + " (--memory)");
  }
  used_ += wanted.size;
  peak_ = std::max(peak_, used_);
  STEPCAST_CUDA(cudaMallocAsync(&blocks_[buffer.index()], static_cast<std::size_t>(std::max<std::int64_t>(1, wanted.size.count())), stream));
}

void CudaDevice::give(plan::BufferId buffer, cudaStream_t stream) {
  void* const block = std::exchange(blocks_[buffer.index()], nullptr);
  if (block == nullptr) return;
  used_ -= program_.buffers[buffer.index()].size;
  STEPCAST_CUDA(cudaFreeAsync(block, stream));
}

void CudaDevice::finish() {
  *static_cast<volatile int*>(released_) = 1;
  for (std::size_t s = 0; s < streams_.size(); ++s) STEPCAST_CUDA(cudaStreamSynchronize(streams_[s]));
  if (const std::string trouble = communicators_.trouble(); !trouble.empty()) throw SystemError("NCCL: " + trouble);
  const auto since_origin = [&](std::size_t mark) {
    float milliseconds = 0.0F;
    STEPCAST_CUDA(cudaEventElapsedTime(&milliseconds, origin_[0], marks_[mark]));
    return origin_ns_ + static_cast<std::int64_t>(double{milliseconds} * 1e6);
  };
  for (const std::size_t i : issued_) intervals_[i] = {since_origin(timings_[i]->begin), since_origin(timings_[i]->end)};
}

std::vector<std::string> CudaDevice::standing() const {
  std::vector<std::string> text;
  std::vector<bool> named(streams_.size(), false);
  for (std::size_t i = 0; i < timings_.size(); ++i) {
    const plan::Instruction& instruction = program_.instructions[i];
    if (!timings_[i] || named[instruction.stream.index()] || cudaEventQuery(marks_[timings_[i]->end]) != cudaErrorNotReady) continue;
    named[instruction.stream.index()] = true;
    text.push_back(program_.streams[instruction.stream.index()].name + ": instruction " + std::to_string(i) + ", " + plan::opcode_of(instruction.body) + " '" +
                   program_.labels[instruction.label.index()] + "'");
  }
  return text;
}

}  // namespace stepcast::executor::cuda
