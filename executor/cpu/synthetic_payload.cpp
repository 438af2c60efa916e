#include "executor/cpu/synthetic_payload.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <variant>

#include <Eigen/Core>

#include "executor/cpu/attention.hpp"
#include "executor/cpu/gemm.hpp"
#include "executor/common/host_adam.hpp"
#include "sim/base/file.hpp"
#include "sim/base/random.hpp"

namespace stepcast::executor {
namespace {

using plan::OpClass;
using plan::Pass;

constexpr std::size_t kLine = 16;  // elements of a cache line

std::size_t elements(Bytes bytes) { return (static_cast<std::size_t>(bytes.count()) + sizeof(float) - 1) / sizeof(float); }
std::size_t product(std::int64_t a, std::int64_t b, std::int64_t c = 1, std::int64_t d = 1) { return static_cast<std::size_t>(a * b * c * d); }

// Elements that an instruction touches, operands and results.
std::size_t footprint(const plan::Program& program, const plan::Body& body) {
  if (const auto* compute = std::get_if<plan::Compute>(&body)) {
    const plan::Kernel& k = program.kernels[compute->kernel.index()];
    std::size_t total = elements(k.read) + elements(k.written);
    if (k.gemm) total = std::max(total, product(k.gemm->batch, k.gemm->m, k.gemm->k) + product(k.gemm->batch, k.gemm->k, k.gemm->n) + product(k.gemm->batch, k.gemm->m, k.gemm->n));
    if (k.attention) {
      const plan::AttentionShape& a = *k.attention;
      const std::size_t one = product(a.batch, a.query_length, a.query_heads, a.head_dim + a.value_dim + 1) + product(a.batch, a.kv_length, a.kv_heads, a.head_dim + a.value_dim);
      total = std::max(total, 2 * one);
    }
    return total;
  }
  if (const auto* copy = std::get_if<plan::Copy>(&body)) return elements(copy->bytes);
  if (const auto* host = std::get_if<plan::HostCompute>(&body)) return elements(host->bytes);
  if (const auto* batch = std::get_if<plan::LoadBatch>(&body)) return elements(batch->bytes);
  return 0;
}

Bytes message_bytes(const plan::Body& body) {
  if (const auto* c = std::get_if<plan::Collective>(&body)) return c->bytes;
  if (const auto* s = std::get_if<plan::Send>(&body)) return s->bytes;
  if (const auto* r = std::get_if<plan::Recv>(&body)) return r->bytes;
  return Bytes{};
}

// Elements one after the other, from the start again at the end.
class Block {
 public:
  void resize(std::size_t size) { data_.resize(size); }
  [[nodiscard]] std::vector<float>& data() { return data_; }
  float* take(std::size_t count) {
    if (next_ + count > data_.size()) next_ = 0;
    float* const at = data_.data() + next_;
    next_ += (count + kLine - 1) / kLine * kLine;
    return at;
  }
  std::span<std::byte> bytes(Bytes count) {
    const auto size = static_cast<std::size_t>(count.count());
    return {reinterpret_cast<std::byte*>(take((size + sizeof(float) - 1) / sizeof(float))), size};
  }

 private:
  std::vector<float> data_;
  std::size_t next_ = 0;
};

// Reads and writes in step, as a kernel that streams does.
void stream(const float* in, std::size_t reads, float* out, std::size_t writes, bool exponential) {
  constexpr std::size_t kChunks = 64;
  for (std::size_t c = 0; c < kChunks; ++c) {
    const std::size_t in_begin = reads * c / kChunks;
    const std::size_t in_end = reads * (c + 1) / kChunks;
    const std::size_t begin = writes * c / kChunks;
    const std::size_t end = writes * (c + 1) / kChunks;
    float sums[kLine] = {};
    const std::size_t shared = std::min(in_end - in_begin, end - begin);
    std::size_t i = in_begin + shared;
    for (; i + kLine <= in_end; i += kLine) {
      for (std::size_t j = 0; j < kLine; ++j) sums[j] += in[i + j];
    }
    const float carry = sums[0] + (i < in_end ? in[i] : 0.0F);
    for (std::size_t j = 0; j < shared; ++j) out[begin + j] = in[in_begin + j] * 0.5F + carry;
    std::fill(out + begin + shared, out + end, carry);
    if (exponential) {
      Eigen::Map<Eigen::ArrayXf> written{out + begin, static_cast<Eigen::Index>(end - begin)};
      written = (-written.abs()).exp();
    }
  }
}

}  // namespace

struct SyntheticPayload::Lane {
  Block in;
  Block out;
  Block moved;
  Block landed;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{nullptr, std::fclose};
  std::int64_t updates = 0;
  int threads = 1;  // of Adam

  void gemm(const plan::Kernel& kernel) {
    const plan::GemmShape& s = *kernel.gemm;
    Product p{.m = s.m, .n = s.n, .k = s.k, .b = Transpose::kYes};
    if (kernel.pass == Pass::kInputGrad) p.b = Transpose::kNo;
    if (kernel.pass == Pass::kWeightGrad) p = {.m = s.m, .n = s.n, .k = s.k, .a = Transpose::kYes, .accumulates = true};
    for (std::int64_t b = 0; b < s.batch; ++b) multiply(p, in.take(product(s.m, s.k)), in.take(product(s.k, s.n)), out.take(product(s.m, s.n)));
  }

  void attention(const plan::Kernel& kernel) {
    const plan::AttentionShape& s = *kernel.attention;
    const std::size_t q = product(s.batch, s.query_length, s.query_heads, s.head_dim);
    const std::size_t o = product(s.batch, s.query_length, s.query_heads, s.value_dim);
    const std::size_t k = product(s.batch, s.kv_length, s.kv_heads, s.head_dim);
    const std::size_t v = product(s.batch, s.kv_length, s.kv_heads, s.value_dim);
    const std::size_t rows = product(s.batch, s.query_length, s.query_heads);
    const AttentionInputs inputs{in.take(q), in.take(k), in.take(v)};
    if (kernel.pass == Pass::kForward) return attention_forward(s, inputs, out.take(o), out.take(rows));
    attention_backward(s, inputs, in.take(o), in.take(rows), in.take(o), {out.take(q), out.take(k), out.take(v)});
  }

  void update(std::size_t n) {
    float* const p = out.take(3 * n);
    const std::span<float> state{p, 3 * n};
    std::transform(state.begin() + static_cast<std::ptrdiff_t>(2 * n), state.end(), state.begin() + static_cast<std::ptrdiff_t>(2 * n), [](float x) { return std::fabs(x); });
    adam({}, ++updates, {state.first(n), {in.take(n), n}, state.subspan(n, n), state.subspan(2 * n, n)}, 1.0F, threads);
  }
};

SyntheticPayload::SyntheticPayload(const plan::Program& program, std::uint64_t seed, std::size_t least, int threads) : program_{program} {
  struct Need {
    std::size_t data = 0;
    Bytes moved;
    bool works = false;
  };
  std::vector<Need> needs(program.streams.size());
  for (const plan::Instruction& i : program.instructions) {
    Need& need = needs[i.stream.index()];
    need.data = std::max(need.data, footprint(program, i.body));
    need.moved = std::max(need.moved, message_bytes(i.body));
  }
  for (std::size_t s = 0; s < needs.size(); ++s) {
    auto lane = std::make_unique<Lane>();
    lane->threads = threads;
    Rng rng{seed, "synthetic-data", s};
    if (needs[s].data > 0) {
      const std::size_t size = std::max(least, 2 * needs[s].data + kLine * 8);
      lane->in.resize(size);
      lane->out.resize(size);
      // Random where it matters, cheap where it does not: one period of random numbers, repeated.
      constexpr std::size_t kPeriod = 1 << 16;
      std::vector<float>& data = lane->in.data();
      for (std::size_t i = 0; i < size; ++i) data[i] = i < kPeriod ? static_cast<float>(rng.uniform(-1.0, 1.0)) : data[i - kPeriod];
    }
    // Messages lie in no cache either: a gradient that was just written by another stream does not.
    if (needs[s].moved > Bytes{}) {
      const std::size_t size = std::max(least, 2 * elements(needs[s].moved) + kLine * 8);
      lane->moved.resize(size);
      lane->landed.resize(size);
    }
    lanes_.push_back(std::move(lane));
  }
}

SyntheticPayload::~SyntheticPayload() = default;

SyntheticPayload::Lane& SyntheticPayload::lane(std::size_t i) { return *lanes_[program_.instructions[i].stream.index()]; }

void SyntheticPayload::compute(std::size_t i) {
  Lane& l = lane(i);
  const plan::Kernel& kernel = program_.kernels[std::get<plan::Compute>(program_.instructions[i].body).kernel.index()];
  if (kernel.gemm) return l.gemm(kernel);
  if (kernel.attention) return l.attention(kernel);
  const std::size_t reads = elements(kernel.read);
  const std::size_t writes = elements(kernel.written);
  if (kernel.op == OpClass::kOptimizer) return l.update(std::max<std::size_t>(1, writes / 3));
  const bool exponential = kernel.op == OpClass::kSoftmax || kernel.op == OpClass::kLoss ||
                           (kernel.op == OpClass::kElementwise && writes > 0 && kernel.flops.si() >= 4.0 * static_cast<double>(writes));
  stream(l.in.take(reads), reads, l.out.take(writes), writes, exponential);
}

std::span<std::byte> SyntheticPayload::collective(std::size_t i) { return lane(i).moved.bytes(message_bytes(program_.instructions[i].body)); }
std::span<std::byte> SyntheticPayload::landing(std::size_t i) { return lane(i).landed.bytes(message_bytes(program_.instructions[i].body)); }

std::span<const std::byte> SyntheticPayload::outgoing(std::size_t i) { return collective(i); }
std::span<std::byte> SyntheticPayload::incoming(std::size_t i) { return landing(i); }

void SyntheticPayload::copy(std::size_t i) {
  Lane& l = lane(i);
  const plan::Copy& copy = std::get<plan::Copy>(program_.instructions[i].body);
  const std::size_t n = elements(copy.bytes);
  if (copy.kind != plan::CopyKind::kNvmeToHost && copy.kind != plan::CopyKind::kHostToNvme) {
    std::memcpy(l.out.take(n), l.in.take(n), n * sizeof(float));
    return;
  }
  if (!l.file) l.file.reset(std::tmpfile());
  if (!l.file) throw SystemError("no temporary file for the plan's NVMe copies");
  std::rewind(l.file.get());
  const bool reads = copy.kind == plan::CopyKind::kNvmeToHost;
  std::size_t done = reads ? std::fread(l.out.take(n), sizeof(float), n, l.file.get()) : std::fwrite(l.in.take(n), sizeof(float), n, l.file.get());
  if (reads && done < n) {  // nobody wrote it yet
    std::rewind(l.file.get());
    done = std::fwrite(l.in.take(n), sizeof(float), n, l.file.get());
    std::rewind(l.file.get());
    done = std::fread(l.out.take(n), sizeof(float), n, l.file.get());
  }
  if (done < n || std::fflush(l.file.get()) != 0) throw SystemError("the temporary file of the plan's NVMe copies: the disk refused");
}

void SyntheticPayload::host_compute(std::size_t i) {
  // Adam moves 28 bytes a parameter.
  const auto bytes = std::get<plan::HostCompute>(program_.instructions[i].body).bytes.count();
  lane(i).update(std::max<std::size_t>(1, static_cast<std::size_t>(bytes) / 28));
}

void SyntheticPayload::load_batch(std::size_t i) {
  Lane& l = lane(i);
  const std::size_t n = elements(std::get<plan::LoadBatch>(program_.instructions[i].body).bytes);
  std::memcpy(l.out.take(n), l.in.take(n), n * sizeof(float));
}

}  // namespace stepcast::executor
