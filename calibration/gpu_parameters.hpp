// calibration/gpu_parameters.hpp — catalogue entry and profile to the figures that the GPU model
// computes with.
#pragma once

#include "calibration/profile.hpp"
#include "models/gpu/gpu_parameters.hpp"
#include "topologies/hardware.hpp"

namespace stepcast::calibration {

// Training keeps the tensor cores busy for hours: the clock is what the power limit leaves. Tables of
// single kernels come from runs of milliseconds at the boost clock.
enum class ClockRegime : std::uint8_t { kSustained, kShortRun };

// Whose fp8 products: the matrix library's with a scale a tensor, which Transformer Engine and torchao call in training; or
// kernels of serving engines with a scale a token, which the fp8 tables time.
enum class Fp8Kernels : std::uint8_t { kLibrary, kServing };

// A rate that the catalogue lacks stays zero (not supported); bf16 and fp16 stand in for neither other.
gpu::GpuParameters make_parameters(const topology::Gpu& gpu, const Profile& profile,
                                   ClockRegime regime = ClockRegime::kSustained, Fp8Kernels fp8 = Fp8Kernels::kLibrary);

// Fused attention kernels by generation. Profiles describe the newest of each architecture; older ones
// are slower by published ratios (gpu_parameters.cpp).
enum class AttentionGeneration : std::uint8_t { kNewest, kFlash2, kFlash1 };
gpu::GpuParameters with_attention(gpu::GpuParameters parameters, const topology::Gpu& gpu, AttentionGeneration generation);

}  // namespace stepcast::calibration
