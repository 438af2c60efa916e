#include "executor/cuda/host_side.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <variant>

#include "executor/common/host_adam.hpp"
#include "executor/common/payload.hpp"
#include "executor/cuda/check.hpp"
#include "executor/cuda/kernels.hpp"

namespace stepcast::executor::cuda {
namespace {

constexpr std::size_t kPage = 4096;            // of the host; larger ones are touched more than once
constexpr std::size_t kAdamBytes = 28;         // of DRAM a parameter: four floats read, three written
std::size_t size_of(Bytes bytes) { return static_cast<std::size_t>(bytes.count()); }

struct Wanted {
  std::size_t pinned = 0;
  std::size_t pageable = 0;
  std::size_t managed = 0;
  std::size_t parameters = 0;
};

void want(const plan::Body& body, Wanted& wanted) {
  if (const auto* batch = std::get_if<plan::LoadBatch>(&body)) wanted.pinned = std::max(wanted.pinned, size_of(batch->bytes));
  if (const auto* host = std::get_if<plan::HostCompute>(&body)) wanted.parameters = std::max(wanted.parameters, std::max<std::size_t>(1, size_of(host->bytes) / kAdamBytes));
  const auto* const copy = std::get_if<plan::Copy>(&body);
  if (copy == nullptr || copy->kind == plan::CopyKind::kDeviceToDevice) return;
  std::size_t& kind = copy->host == plan::Memory::kManaged ? wanted.managed : copy->host == plan::Memory::kPageableHost ? wanted.pageable : wanted.pinned;
  kind = std::max(kind, size_of(copy->bytes));
}

// Whether the host may touch managed pages while kernels run.
bool managed_memory_is_shared() {
  int device = 0;
  int concurrent = 0;
  STEPCAST_CUDA(cudaGetDevice(&device));
  STEPCAST_CUDA(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, device));
  return concurrent != 0;
}

void touch_on_host(void* memory, std::size_t bytes) {
  auto* const first = static_cast<volatile unsigned char*>(memory);
  for (std::size_t at = 0; at < bytes; at += kPage) first[at] = static_cast<unsigned char>(first[at] + 1U);
}

}  // namespace

struct HostSide::Transfer {
  HostSide* side = nullptr;
  std::size_t bytes = 0;
  bool reads = true;
};
struct HostSide::Update {
  std::vector<float> state;  // parameters, gradients and two moments
  std::int64_t steps = 0;
  int threads = 1;
};
struct HostSide::Touch {
  void* memory = nullptr;
  std::size_t bytes = 0;
};

HostSide::HostSide(const plan::Program& program, plan::StreamId stream, int threads) : transfers_(program.instructions.size()) {
  Wanted wanted;
  for (const plan::Instruction& i : program.instructions) {
    if (i.stream == stream) want(i.body, wanted);
  }
  if (wanted.pinned > 0) {
    STEPCAST_CUDA(cudaMallocHost(&pinned_, wanted.pinned));
    std::memset(pinned_, 1, wanted.pinned);
  }
  pageable_.assign(wanted.pageable, std::byte{1});
  if (wanted.managed > 0 && managed_memory_is_shared()) {
    managed_bytes_ = wanted.managed;
    STEPCAST_CUDA(cudaMallocManaged(&managed_in_, managed_bytes_));
    STEPCAST_CUDA(cudaMallocManaged(&managed_out_, managed_bytes_));
    std::memset(managed_in_, 1, managed_bytes_);
    std::memset(managed_out_, 1, managed_bytes_);
  }
  if (wanted.parameters > 0) {
    update_ = std::make_unique<Update>();
    update_->threads = threads;
    update_->state.assign(4 * wanted.parameters, 0.5F);
  }
}

HostSide::~HostSide() {
  if (pinned_ != nullptr) cudaFreeHost(pinned_);
  if (managed_in_ != nullptr) cudaFree(managed_in_);
  if (managed_out_ != nullptr) cudaFree(managed_out_);
  if (file_ != nullptr) std::fclose(file_);
}

void HostSide::throw_if_failed() const {
  if (file_failed_) throw SystemError("the temporary file of the plan's NVMe copies: the disk refused");
}

void HostSide::begin_step(cudaStream_t stream) {
  throw_if_failed();
  touches_.clear();
  if (used_in_) touch_on_host(managed_in_, managed_bytes_);
  if (used_out_) {
    stream_bytes(stream, nullptr, 0, managed_out_, managed_bytes_, false);
    STEPCAST_CUDA(cudaStreamSynchronize(stream));
  }
  used_in_ = used_out_ = false;
}

void HostSide::require_managed() const {
  if (managed_in_ == nullptr) throw NotSupported("the host cannot touch managed memory of this GPU while kernels run");
}

void HostSide::managed_to_device(cudaStream_t stream, void* to, std::size_t bytes) {
  require_managed();
  used_in_ = true;
  stream_bytes(stream, managed_in_, bytes, to, bytes, false);
}

void CUDART_CB HostSide::touch_pages(void* touch) {
  const auto& t = *static_cast<Touch*>(touch);
  touch_on_host(t.memory, t.bytes);
}

void HostSide::managed_to_host(cudaStream_t stream, std::size_t bytes) {
  require_managed();
  used_out_ = true;
  touches_.push_back(std::make_unique<Touch>(Touch{managed_out_, bytes}));
  STEPCAST_CUDA(cudaLaunchHostFunc(stream, touch_pages, touches_.back().get()));
}

void CUDART_CB HostSide::move_file(void* transfer) {
  const auto& t = *static_cast<Transfer*>(transfer);
  std::FILE* const file = t.side->file_;
  std::rewind(file);
  std::size_t done = t.reads ? std::fread(t.side->pinned_, 1, t.bytes, file) : std::fwrite(t.side->pinned_, 1, t.bytes, file);
  if (t.reads && done < t.bytes) {  // nobody wrote it yet
    std::rewind(file);
    done = std::fwrite(t.side->pinned_, 1, t.bytes, file);
  }
  if (done < t.bytes || std::fflush(file) != 0) t.side->file_failed_ = true;
}

void HostSide::transfer(cudaStream_t stream, std::size_t instruction, std::size_t bytes, bool reads) {
  if (file_ == nullptr) file_ = std::tmpfile();
  if (file_ == nullptr) throw SystemError("no temporary file for the plan's NVMe copies");
  std::unique_ptr<Transfer>& slot = transfers_[instruction];
  if (!slot) slot = std::make_unique<Transfer>(Transfer{this, bytes, reads});
  STEPCAST_CUDA(cudaLaunchHostFunc(stream, move_file, slot.get()));
}

void CUDART_CB HostSide::adam_step(void* update) {
  auto& u = *static_cast<Update*>(update);
  const std::size_t n = u.state.size() / 4;
  const std::span<float> all{u.state};
  executor::adam({}, ++u.steps, {all.first(n), all.subspan(n, n), all.subspan(2 * n, n), all.subspan(3 * n, n)}, 1.0F, u.threads);
}

void HostSide::update(cudaStream_t stream) { STEPCAST_CUDA(cudaLaunchHostFunc(stream, adam_step, update_.get())); }

}  // namespace stepcast::executor::cuda
