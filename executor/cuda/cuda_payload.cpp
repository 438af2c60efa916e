#include "executor/cuda/cuda_payload.hpp"

#include <algorithm>
#include <variant>

#include "executor/cuda/kernels.hpp"

namespace stepcast::executor::cuda {
namespace {

constexpr std::size_t kLine = 256;                           // bytes: operands begin at these
constexpr std::size_t kLeast = std::size_t{256} << 20U;      // beyond the second-level cache of every GPU

std::size_t size_of(Bytes bytes) { return static_cast<std::size_t>(bytes.count()); }
std::size_t product(std::int64_t a, std::int64_t b, std::int64_t c = 1, std::int64_t d = 1) { return static_cast<std::size_t>(a * b * c * d); }
std::size_t aligned(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

Bytes moved_bytes(const plan::Body& body) {
  if (const auto* c = std::get_if<plan::Collective>(&body)) return c->bytes;
  if (const auto* s = std::get_if<plan::Send>(&body)) return s->bytes;
  if (const auto* r = std::get_if<plan::Recv>(&body)) return r->bytes;
  return Bytes{};
}

// Of operands, then of results.
std::pair<std::size_t, std::size_t> footprint(const plan::Kernel& k) {
  if (k.gemm) {
    const plan::GemmShape& s = *k.gemm;
    const auto e = static_cast<std::size_t>(plan::element_bytes(k.dtype));
    return {aligned(e * product(s.batch, s.m, s.k)) + aligned(e * product(s.batch, s.k, s.n)), aligned(4 * product(s.batch, s.m, s.n))};
  }
  if (k.attention) {  // queries, keys, values, results and their slopes, row sums: fp32 where gradients add up
    const plan::AttentionShape& s = *k.attention;
    const std::int64_t width = std::max(s.head_dim, s.value_dim);
    const std::size_t most = aligned(4 * product(s.batch, std::max(s.query_length, s.kv_length), s.query_heads + 2 * s.kv_heads, width));
    return {5 * most, 5 * most};
  }
  return {aligned(size_of(k.read)) + kLine, aligned(size_of(k.written)) + kLine};
}

// Between the device and elsewhere.
std::size_t copied_bytes(const plan::Body& body) {
  if (const auto* copy = std::get_if<plan::Copy>(&body)) return size_of(copy->bytes);
  if (const auto* batch = std::get_if<plan::LoadBatch>(&body)) return size_of(batch->bytes);
  return 0;
}

kernels::FlashShape shape_of(const plan::AttentionShape& s) {
  return {s.batch, s.query_heads, s.kv_heads, s.query_length, s.kv_length, static_cast<int>(s.head_dim), static_cast<int>(s.value_dim), s.causal, s.window.value_or(0)};
}

// Libraries compute the attention of fp8 models in 16 bits too.
plan::Dtype attention_dtype(const plan::Kernel& kernel) { return kernel.dtype == plan::Dtype::kFp8 ? plan::Dtype::kBf16 : kernel.dtype; }
cudnn::Pass attention_pass(const plan::Kernel& kernel) { return kernel.pass == plan::Pass::kForward ? cudnn::Pass::kForward : cudnn::Pass::kBackward; }

// In 16 bits.
bool has_short_attention(const plan::Kernel& kernel) {
  return kernel.attention && (attention_dtype(kernel) == plan::Dtype::kBf16 || attention_dtype(kernel) == plan::Dtype::kFp16);
}

// Device memory that operators take pieces of in turn.
class Ring {
 public:
  ~Ring() { cudaFree(base_); }
  Ring() = default;
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  void resize(std::size_t bytes) {
    STEPCAST_CUDA(cudaMalloc(&base_, bytes));
    size_ = bytes;
  }
  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(base_); }
  [[nodiscard]] std::size_t size() const { return size_; }
  std::byte* take(std::size_t bytes) {
    if (next_ + bytes > size_) next_ = 0;
    std::byte* const at = data() + next_;
    next_ += aligned(bytes);
    return at;
  }

 private:
  void* base_ = nullptr;
  std::size_t size_ = 0;
  std::size_t next_ = 0;
};

}  // namespace

struct CudaPayload::Lane {
  Ring in;
  Ring out;
  Ring moved;
  Ring landed;
  Ring work;  // of cuDNN's attention
  HostSide host;
  std::int64_t updates = 0;

  Lane(const plan::Program& program, plan::StreamId stream, int threads) : host{program, stream, threads} {}
};

CudaPayload::CudaPayload(const plan::Program& program, const Streams& streams, Matmul& matmul, cudnn::AttentionLibrary& library, std::uint64_t seed, int threads)
    : program_{program}, streams_{streams}, matmul_{matmul}, library_{library} {
  for (std::size_t s = 0; s < streams.size(); ++s) {
    auto lane = std::make_unique<Lane>(program, plan::StreamId{s}, threads);
    std::size_t in = 0;
    std::size_t out = 0;
    std::size_t moved = 0;
    std::size_t work = 0;
    for (const plan::Instruction& i : program.instructions) {
      if (i.stream.index() != s) continue;
      if (const auto* compute = std::get_if<plan::Compute>(&i.body)) {
        const plan::Kernel& kernel = program.kernels[compute->kernel.index()];
        const auto [operands, results] = footprint(kernel);
        if (has_short_attention(kernel)) {
          // Compiled now, so that no step waits for it.
          const auto* plan = library.plan(shape_of(*kernel.attention), attention_dtype(kernel), attention_pass(kernel));
          if (plan != nullptr) work = std::max(work, plan->workspace());
        }
        in = std::max(in, operands);
        out = std::max(out, results);
      }
      in = std::max(in, copied_bytes(i.body));
      out = std::max(out, copied_bytes(i.body));
      moved = std::max(moved, size_of(moved_bytes(i.body)));
    }
    const cudaStream_t stream = streams[s];
    if (work > 0) lane->work.resize(aligned(work));
    if (in + out > 0) {
      lane->in.resize(std::max(kLeast, 2 * in + kLine));
      lane->out.resize(std::max(kLeast, 2 * out + kLine));
      // As bf16: random bytes that are small numbers in every format.
      randomize(stream, plan::Dtype::kBf16, lane->in.data(), lane->in.size() / 2, seed + s);
      randomize(stream, plan::Dtype::kBf16, lane->out.data(), lane->out.size() / 2, seed + s + 1);
    }
    if (moved > 0) {
      lane->moved.resize(aligned(moved));
      lane->landed.resize(aligned(moved));
      randomize(stream, plan::Dtype::kBf16, lane->moved.data(), lane->moved.size() / 2, seed + s + 2);
    }
    lanes_.push_back(std::move(lane));
  }
  STEPCAST_CUDA(cudaDeviceSynchronize());
}

CudaPayload::~CudaPayload() = default;

void CudaPayload::gemm(Lane& l, std::size_t stream, const plan::Kernel& kernel) {
  const plan::GemmShape& s = *kernel.gemm;
  Product p{.m = s.m, .n = s.n, .k = s.k, .b = Transpose::kYes};
  // fp8 products all read along k; others as a linear layer lays its operands.
  if (kernel.dtype != plan::Dtype::kFp8 && kernel.pass == plan::Pass::kInputGrad) p.b = Transpose::kNo;
  if (kernel.dtype != plan::Dtype::kFp8 && kernel.pass == plan::Pass::kWeightGrad) p = {.m = s.m, .n = s.n, .k = s.k, .a = Transpose::kYes};
  const auto e = static_cast<std::size_t>(plan::element_bytes(kernel.dtype));
  const auto r = static_cast<std::size_t>(plan::element_bytes(result_dtype(kernel.dtype)));
  const std::int64_t batch = s.batch / kernel.launches;  // they divide it: sim/plan/check_programs.cpp
  for (int launch = 0; launch < kernel.launches; ++launch) {
    matmul_.multiply(stream, streams_[stream], kernel.dtype, batch, p, l.in.take(e * product(batch, s.m, s.k)), l.in.take(e * product(batch, s.k, s.n)),
                     l.out.take(r * product(batch, s.m, s.n)));
  }
}

void CudaPayload::attention(Lane& l, cudaStream_t stream, const plan::Kernel& kernel) {
  const kernels::FlashShape s = shape_of(*kernel.attention);
  const plan::Dtype dtype = attention_dtype(kernel);
  const bool forward = attention_pass(kernel) == cudnn::Pass::kForward;
  if (has_short_attention(kernel)) {
    if (const auto* plan = library_.plan(s, dtype, attention_pass(kernel))) return attention_by_library(l, stream, s, *plan, forward);
  }
  if (flash_can(s, dtype)) return attention_by_blocks(l, stream, s, dtype, forward);
  attention_by_rows(l, stream, kernel);
}

void CudaPayload::attention_by_library(Lane& l, cudaStream_t stream, const kernels::FlashShape& s, const cudnn::AttentionPlan& plan, bool forward) {
  const std::size_t q = 2 * product(s.batch, s.query_length, s.query_heads, s.head_dim);
  const std::size_t k = 2 * product(s.batch, s.kv_length, s.kv_heads, s.head_dim);
  const std::size_t v = 2 * product(s.batch, s.kv_length, s.kv_heads, s.value_dim);
  const std::size_t o = 2 * product(s.batch, s.query_length, s.query_heads, s.value_dim);
  const std::size_t sums = 4 * product(s.batch, s.query_length, s.query_heads);
  cudnn::AttentionOperands operands{.q = l.in.take(q), .k = l.in.take(k), .v = l.in.take(v)};
  if (forward) {
    operands.out = l.out.take(o);
    operands.log_sums = reinterpret_cast<float*>(l.out.take(sums));
  } else {  // what the forward pass left is random here: the work is the same
    operands.out = l.in.take(o);
    operands.log_sums = reinterpret_cast<float*>(l.in.take(sums));
    operands.dout = l.in.take(o);
    operands.dq = l.out.take(q);
    operands.dk = l.out.take(k);
    operands.dv = l.out.take(v);
  }
  if (plan.zeroed() > 0) STEPCAST_CUDA(cudaMemsetAsync(l.work.data(), 0, plan.zeroed(), stream));
  library_.run(plan, stream, operands, l.work.data());
}

std::string CudaPayload::attention_account() const {
  bool half = false;
  bool single = false;
  for (const plan::Kernel& kernel : program_.kernels) {
    if (!kernel.attention) continue;
    (has_short_attention(kernel) ? half : single) = true;
  }
  std::string text = half ? library_.account() : "";
  if (single) text += std::string{half ? "; " : ""} + "our own kernel, row by row in fp32";
  return text.empty() ? "none" : text;
}

void CudaPayload::attention_by_blocks(Lane& l, cudaStream_t stream, const kernels::FlashShape& s, plan::Dtype dtype, bool forward) {
  const auto e = static_cast<std::size_t>(plan::element_bytes(dtype));
  const std::size_t q = product(s.batch, s.query_length, s.query_heads, s.head_dim);
  const std::size_t k = product(s.batch, s.kv_length, s.kv_heads, s.head_dim);
  const std::size_t v = product(s.batch, s.kv_length, s.kv_heads, s.value_dim);
  const std::size_t o = product(s.batch, s.query_length, s.query_heads, s.value_dim);
  const std::size_t sums = 4 * product(s.batch, s.query_length, s.query_heads);
  FlashTensors t{.q = l.in.take(e * q), .k = l.in.take(e * k), .v = l.in.take(e * v), .out = l.out.take(e * o), .log_sums = reinterpret_cast<float*>(l.out.take(sums))};
  if (forward) return flash_forward(stream, dtype, s, t);
  // What the forward pass left is random here: the work is the same.
  t.out = l.in.take(e * o);
  t.log_sums = reinterpret_cast<float*>(l.in.take(sums));
  flash_backward(stream, dtype, s, t,
                 {.dout = l.in.take(e * o), .delta = reinterpret_cast<float*>(l.out.take(sums)), .dq = reinterpret_cast<float*>(l.out.take(4 * q)), .dk = l.out.take(e * k), .dv = l.out.take(e * v)});
}

// Correct for any width and format, without tensor cores: much slower than what a training run would call.
void CudaPayload::attention_by_rows(Lane& l, cudaStream_t stream, const plan::Kernel& kernel) {
  const plan::AttentionShape& s = *kernel.attention;
  const std::int64_t width = (s.query_heads + 2 * s.kv_heads) * s.head_dim;
  const std::int64_t rows = s.batch * s.kv_length;
  const std::size_t qkv = 4 * product(rows, width);
  const std::size_t out = 4 * product(rows, s.query_heads, s.head_dim);
  const kernels::AttentionRows a{s.kv_length, s.query_heads, s.kv_heads, s.head_dim, width, reinterpret_cast<const float*>(l.in.take(qkv))};
  auto* const o = reinterpret_cast<float*>(l.out.take(out));
  auto* const sums = reinterpret_cast<float*>(l.out.take(4 * product(rows, s.query_heads)));
  if (kernel.pass == plan::Pass::kForward) return cuda::attention(stream, a, rows, o, sums);
  const auto* const dout = reinterpret_cast<const float*>(l.in.take(out));
  attention_gradient(stream, a, rows, {o, sums, dout}, reinterpret_cast<float*>(l.out.take(qkv)));
}

void CudaPayload::compute(std::size_t i) {
  Lane& l = lane(i);
  const std::size_t stream = program_.instructions[i].stream.index();
  const plan::Kernel& kernel = program_.kernels[std::get<plan::Compute>(program_.instructions[i].body).kernel.index()];
  if (kernel.gemm) return gemm(l, stream, kernel);
  if (kernel.attention) return attention(l, streams_[stream], kernel);
  if (kernel.op == plan::OpClass::kOptimizer) {
    const std::size_t n = std::max<std::size_t>(1, size_of(kernel.written) / 12);
    auto* const state = reinterpret_cast<float*>(l.out.take(12 * n));
    const auto* const g = reinterpret_cast<const float*>(l.in.take(4 * n));
    return adam(streams_[stream], kernels::adam_step({}, ++l.updates, 1.0F), n, state, g, state + n, state + 2 * n);
  }
  const double elements = static_cast<double>(kernel.written.count()) / static_cast<double>(plan::element_bytes(kernel.dtype));
  const bool exponential = kernel.op == plan::OpClass::kSoftmax || kernel.op == plan::OpClass::kLoss ||
                           (kernel.op == plan::OpClass::kElementwise && elements > 0.0 && kernel.flops.si() >= 4.0 * elements);
  // Unfused operators are several kernels, which share the bytes.
  const auto launches = static_cast<std::size_t>(std::max(1, kernel.launches));
  const std::size_t read = size_of(kernel.read) / launches;
  const std::size_t written = size_of(kernel.written) / launches;
  for (std::size_t k = 0; k < launches; ++k) stream_bytes(streams_[stream], l.in.take(read + 16), read, l.out.take(written + 16), written, exponential);
}

std::span<std::byte> CudaPayload::collective(std::size_t i) { return {lane(i).moved.data(), size_of(moved_bytes(program_.instructions[i].body))}; }
std::span<std::byte> CudaPayload::landing(std::size_t i) { return {lane(i).landed.data(), size_of(moved_bytes(program_.instructions[i].body))}; }

void CudaPayload::copy(std::size_t i) {
  Lane& l = lane(i);
  const cudaStream_t stream = streams_[program_.instructions[i].stream.index()];
  const auto& copy = std::get<plan::Copy>(program_.instructions[i].body);
  const std::size_t bytes = size_of(copy.bytes);
  const bool managed = copy.host == plan::Memory::kManaged;
  switch (copy.kind) {
    case plan::CopyKind::kHostToDevice:
      if (managed) return l.host.managed_to_device(stream, l.out.take(bytes), bytes);
      STEPCAST_CUDA(cudaMemcpyAsync(l.out.take(bytes), host_memory(l, copy.host), bytes, cudaMemcpyHostToDevice, stream));
      return;
    case plan::CopyKind::kDeviceToHost:
      if (managed) return l.host.managed_to_host(stream, bytes);
      STEPCAST_CUDA(cudaMemcpyAsync(host_memory(l, copy.host), l.in.take(bytes), bytes, cudaMemcpyDeviceToHost, stream));
      return;
    case plan::CopyKind::kDeviceToDevice: STEPCAST_CUDA(cudaMemcpyAsync(l.out.take(bytes), l.in.take(bytes), bytes, cudaMemcpyDeviceToDevice, stream)); return;
    case plan::CopyKind::kNvmeToHost:
    case plan::CopyKind::kHostToNvme: return l.host.transfer(stream, i, bytes, copy.kind == plan::CopyKind::kNvmeToHost);
  }
}

void* CudaPayload::host_memory(Lane& l, plan::Memory kind) { return kind == plan::Memory::kPageableHost ? l.host.pageable() : l.host.pinned(); }

void CudaPayload::host_compute(std::size_t i) { lane(i).host.update(streams_[program_.instructions[i].stream.index()]); }

void CudaPayload::load_batch(std::size_t i) {
  Lane& l = lane(i);
  const std::size_t bytes = size_of(std::get<plan::LoadBatch>(program_.instructions[i].body).bytes);
  STEPCAST_CUDA(cudaMemcpyAsync(l.out.take(bytes), l.host.pinned(), bytes, cudaMemcpyHostToDevice, streams_[program_.instructions[i].stream.index()]));
}

void CudaPayload::begin_step() {
  for (std::size_t s = 0; s < lanes_.size(); ++s) lanes_[s]->host.begin_step(streams_[s]);
}

std::vector<std::pair<std::string, double>> CudaPayload::values() const {
  for (const auto& l : lanes_) l->host.throw_if_failed();
  return {};
}

}  // namespace stepcast::executor::cuda
