// sim/run/slow_chains.hpp — how long a chain of kernels takes while collectives hold a part of the GPU.
//
// Model    Each kernel of the chain is timed on the SMs and the memory bandwidth that are left (gpu::beside); within the
//          chain, work advances at one rate: a share dt / T(what is taken) of the chain in dt. Where a slow-down beside
//          collectives was measured (a profile's `interference`), T is that times the chain's time alone.
// Source   contention of SMs and memory: NVIDIA/nccl issues 689 and 1428; what it costs in training, 18.9 % of compute on
//          average and 40 % at most: arXiv 2507.03114
// Ignores  that kernels of one chain suffer unequally; collectives slowed by the kernels; clocks that fall with both;
//          persistent kernels, whose blocks wait for one another (NVIDIA forum 337991: 1.7 times)
// Cost     one model evaluation a kernel, program and combination of collectives; O(kernels) a chain on first use
// Tests    unit/run_test, unit/gpu_model_test
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/run/compiled_program.hpp"

namespace stepcast::run {

class SlowChains {
 public:
  SlowChains(const plan::Plan& plan, const Machine& machine, const CompiledPlan& compiled);

  // Requires: step is a chain of kernels of that stream.
  Duration busy(std::size_t program, std::size_t stream, std::uint32_t step, const gpu::Taken& taken);

 private:
  struct Case {
    std::size_t program = 0;
    std::size_t stream = 0;
    gpu::Taken taken;
    std::vector<Duration> kernels;               // by kernel of the program
    std::vector<std::optional<Duration>> steps;  // by step of the stream
  };
  Case& case_of(std::size_t program, std::size_t stream, const gpu::Taken& taken);

  const plan::Plan& plan_;
  const Machine& machine_;
  const CompiledPlan& compiled_;
  std::vector<Case> cases_;
};

}  // namespace stepcast::run
