// models/parallel/optimizer.hpp — what an optimizer keeps and does for each parameter.
//
// Symbols  e_g, e_p bytes of a gradient and of a parameter; m bytes of a master copy (4, or 0 without one; then the
//          parameter itself is read); r <= c sides of a matrix; all arithmetic in fp32 unless said
// Model    kept, and moved by one update beside gradient, master and parameter          [bytes an element]
//            adam, adamw   two moments: 8; read and written once by one fused kernel
//            adam-8bit     two moments of 1 byte, an fp32 scale for each block of 256: 2 + 8/256
//            sgd           one momentum: 4
//            adafactor     sums of rows and columns: 4 (r + c) of a matrix, matrices taken as square. The gradient is
//                          read three times (row sums, column sums, update); variance and update (4 each) are
//                          written and read again, and the update once more for its root mean square
//            muon          one momentum (4) for the layers' matrices, adamw for all else. Five Newton-Schulz steps
//                          on each matrix in bf16: A = X X', B = b A + c A A, X = a X + B X, i.e. GEMMs
//                          (r,r,c), (r,r,r), (r,c,r): 5 (4 r^2 c + 2 r^3) FLOP                    (1)
//          moments of adam, adamw, sgd and muon in a narrower format take its bytes in place of 4 (Megatron-Core
//          precision-aware optimizer; DeepSeek-V3 and llm.q: bf16), read and written so
// Source   Kingma and Ba 2015; Loshchilov and Hutter 2019; 8-bit: Dettmers et al. 2022, bitsandbytes (blocks of 256
//          since 0.43); Adafactor: Shazeer and Stern 2018, algorithm 4, torch.optim.Adafactor (foreach); Muon:
//          Jordan et al. 2024, Liu et al. 2025 (arXiv 2502.16982)
// Ignores  Muon: a tensor-parallel rank orthogonalises its own part, a ZeRO shard holds whole matrices (as dealt out
//          to ranks by Jordan et al.); queries, keys and values count as the one matrix they are computed by;
//          Adafactor's sums across tensor-parallel ranks; copies of small vectors
// Tests    unit/optimizer_test
#pragma once

#include <cstdint>
#include <vector>

#include "models/parallel/stage_model.hpp"
#include "models/parallel/strategy.hpp"

namespace stepcast::parallel {

// Of the parameters that one worker updates.
struct Updated {
  std::int64_t elements = 0;
  std::int64_t by_muon = 0;   // of them: in layers' matrices; 0 for other optimizers
  std::int64_t tensors = 0;
};
Updated updated_by_worker(const StageModel& model, const Strategy& strategy);

// Beside a master copy.
Bytes optimizer_states(const StageModel& model, const Strategy& strategy);

// The kernels of one update, in order, with their labels.
struct UpdateKernel {
  const char* label = "";
  plan::Kernel kernel;
};
// Trained weights of linear layers: forward GEMMs but those of the unfused attention.
bool is_weight_product(const workload::Operator& op);
// FLOPs an element.
double update_flops(Optimizer optimizer);
// Of an optimizer that treats every element alike: gradient in, states and master (or the parameter) in and out, the parameter out.
plan::Kernel elementwise_update(Optimizer optimizer, std::int64_t elements, std::int64_t tensors, const Strategy& strategy);
std::vector<UpdateKernel> update_kernels(const StageModel& model, const Strategy& strategy);

// A weight matrix of the stage's layers, rows <= columns, and how many of it one worker orthogonalises.
struct MuonMatrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t count = 0;
};
std::vector<MuonMatrix> muon_matrices(const StageModel& model, const Strategy& strategy);

// Kernels of one fused multi-tensor pass.
int fused_launches(std::int64_t elements, std::int64_t tensors);
// One that streams its operands through an fp32 computation.
plan::Kernel streaming_kernel(double flops, std::int64_t read, std::int64_t written, int launches);

}  // namespace stepcast::parallel
