#include "executor/cuda/cuda_payload.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <variant>

#include "executor/common/host_adam.hpp"
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
  if (k.attention) {
    const plan::AttentionShape& s = *k.attention;
    const std::size_t qkv = 4 * product(s.batch, s.kv_length, s.query_heads + 2 * s.kv_heads, std::max(s.head_dim, s.value_dim));
    return {3 * aligned(qkv), 3 * aligned(qkv)};
  }
  return {aligned(size_of(k.read)) + kLine, aligned(size_of(k.written)) + kLine};
}

std::size_t host_bytes(const plan::Body& body) {
  if (const auto* copy = std::get_if<plan::Copy>(&body)) return size_of(copy->bytes);
  if (const auto* host = std::get_if<plan::HostCompute>(&body)) return size_of(host->bytes);
  if (const auto* batch = std::get_if<plan::LoadBatch>(&body)) return size_of(batch->bytes);
  return 0;
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

struct HostUpdate {
  std::vector<float> state;  // parameters, gradients and two moments
  std::int64_t steps = 0;
};

void CUDART_CB update_on_host(void* data) {
  auto& u = *static_cast<HostUpdate*>(data);
  const std::size_t n = u.state.size() / 4;
  const std::span<float> all{u.state};
  executor::adam({}, ++u.steps, {all.first(n), all.subspan(n, n), all.subspan(2 * n, n), all.subspan(3 * n, n)});
}

struct FileTransfer {
  std::FILE* file = nullptr;
  std::byte* host = nullptr;
  std::size_t bytes = 0;
  bool reads = true;
};

void CUDART_CB move_file(void* data) {
  const auto& t = *static_cast<FileTransfer*>(data);
  std::rewind(t.file);
  std::size_t done = t.reads ? std::fread(t.host, 1, t.bytes, t.file) : std::fwrite(t.host, 1, t.bytes, t.file);
  if (t.reads && done < t.bytes) {  // nobody wrote it yet
    std::rewind(t.file);
    done = std::fwrite(t.host, 1, t.bytes, t.file);
  }
}

}  // namespace

struct CudaPayload::Lane {
  Ring in;
  Ring out;
  Ring moved;
  Ring landed;
  void* host = nullptr;  // pinned
  HostUpdate update;
  FileTransfer transfer;
  std::int64_t updates = 0;

  ~Lane() {
    if (host != nullptr) cudaFreeHost(host);
    if (transfer.file != nullptr) std::fclose(transfer.file);
  }
  Lane() = default;
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
};

CudaPayload::CudaPayload(const plan::Program& program, const Streams& streams, Matmul& matmul, std::uint64_t seed)
    : program_{program}, streams_{streams}, matmul_{matmul} {
  for (std::size_t s = 0; s < streams.size(); ++s) {
    auto lane = std::make_unique<Lane>();
    std::size_t in = 0;
    std::size_t out = 0;
    std::size_t moved = 0;
    std::size_t host = 0;
    std::size_t update = 0;
    for (const plan::Instruction& i : program.instructions) {
      if (i.stream.index() != s) continue;
      if (const auto* compute = std::get_if<plan::Compute>(&i.body)) {
        const auto [operands, results] = footprint(program.kernels[compute->kernel.index()]);
        in = std::max(in, operands);
        out = std::max(out, results);
      }
      if (const std::size_t bytes = host_bytes(i.body); bytes > 0) {
        host = std::max(host, bytes);
        in = std::max(in, bytes);
        out = std::max(out, bytes);
      }
      if (const auto* adam = std::get_if<plan::HostCompute>(&i.body)) update = std::max(update, size_of(adam->bytes) / 28);
      moved = std::max(moved, size_of(moved_bytes(i.body)));
    }
    const cudaStream_t stream = streams[s];
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
    if (host > 0) {
      STEPCAST_CUDA(cudaMallocHost(&lane->host, host));
      std::memset(lane->host, 1, host);
    }
    if (update > 0) lane->update.state.assign(4 * update, 0.5F);
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
  matmul_.multiply(stream, streams_[stream], kernel.dtype, s.batch, p, l.in.take(e * product(s.batch, s.m, s.k)), l.in.take(e * product(s.batch, s.k, s.n)),
                   l.out.take(r * product(s.batch, s.m, s.n)));
}

void CudaPayload::attention(Lane& l, cudaStream_t stream, const plan::Kernel& kernel) {
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
  stream_bytes(streams_[stream], l.in.take(size_of(kernel.read) + 16), size_of(kernel.read), l.out.take(size_of(kernel.written) + 16), size_of(kernel.written), exponential);
}

std::span<std::byte> CudaPayload::collective(std::size_t i) { return {lane(i).moved.data(), size_of(moved_bytes(program_.instructions[i].body))}; }
std::span<std::byte> CudaPayload::landing(std::size_t i) { return {lane(i).landed.data(), size_of(moved_bytes(program_.instructions[i].body))}; }

void CudaPayload::copy(std::size_t i) {
  Lane& l = lane(i);
  const cudaStream_t stream = streams_[program_.instructions[i].stream.index()];
  const auto& copy = std::get<plan::Copy>(program_.instructions[i].body);
  const std::size_t bytes = size_of(copy.bytes);
  switch (copy.kind) {
    case plan::CopyKind::kHostToDevice: STEPCAST_CUDA(cudaMemcpyAsync(l.out.take(bytes), l.host, bytes, cudaMemcpyHostToDevice, stream)); break;
    case plan::CopyKind::kDeviceToHost: STEPCAST_CUDA(cudaMemcpyAsync(l.host, l.in.take(bytes), bytes, cudaMemcpyDeviceToHost, stream)); break;
    case plan::CopyKind::kDeviceToDevice: STEPCAST_CUDA(cudaMemcpyAsync(l.out.take(bytes), l.in.take(bytes), bytes, cudaMemcpyDeviceToDevice, stream)); break;
    case plan::CopyKind::kNvmeToHost:
    case plan::CopyKind::kHostToNvme:
      if (l.transfer.file == nullptr) l.transfer.file = std::tmpfile();
      if (l.transfer.file == nullptr) throw SystemError("no temporary file for the plan's NVMe copies");
      l.transfer = {l.transfer.file, static_cast<std::byte*>(l.host), bytes, copy.kind == plan::CopyKind::kNvmeToHost};
      STEPCAST_CUDA(cudaLaunchHostFunc(stream, move_file, &l.transfer));
      break;
  }
}

void CudaPayload::host_compute(std::size_t i) { STEPCAST_CUDA(cudaLaunchHostFunc(streams_[program_.instructions[i].stream.index()], update_on_host, &lane(i).update)); }

void CudaPayload::load_batch(std::size_t i) {
  Lane& l = lane(i);
  const std::size_t bytes = size_of(std::get<plan::LoadBatch>(program_.instructions[i].body).bytes);
  STEPCAST_CUDA(cudaMemcpyAsync(l.out.take(bytes), l.host, bytes, cudaMemcpyHostToDevice, streams_[program_.instructions[i].stream.index()]));
}

}  // namespace stepcast::executor::cuda
