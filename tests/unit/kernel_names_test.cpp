// Kernels by name: libraries, frameworks and compilers as profilers show them.
#include <doctest/doctest.h>

#include "calibration/kernel_names.hpp"

using namespace stepcast::calibration;

TEST_SUITE_BEGIN("calibration");

TEST_CASE("kernel names: kinds of work") {
  const auto is = [](const char* name, GpuWork work) {
    CAPTURE(name);
    CHECK(name_of(classify_kernel(name)) == std::string{name_of(work)});
  };
  is("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", GpuWork::kCollective);
  is("void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, cutlass::bfloat16_t>>", GpuWork::kAttention);
  is("cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_7_64x128x128_4x1x1_cga1x1x1_kernel0_0", GpuWork::kAttention);
  is("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NTT", GpuWork::kGemm);
  is("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize2x1x1_execute_segment_k_off_kernel__5x_cublas", GpuWork::kGemm);
  is("Cijk_Alik_Bljk_SB_MT64x64x16_SE_1LDSB0_APM1_ABV0", GpuWork::kGemm);
  is("ampere_sgemm_128x64_nn", GpuWork::kGemm);
  is("void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16>", GpuWork::kGemm);
  is("sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw", GpuWork::kConvolution);
  is("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>", GpuWork::kElementwise);
  is("triton_poi_fused_add_cos_sin_0", GpuWork::kElementwise);
  is("triton_red_fused__to_copy_native_layer_norm_3", GpuWork::kNorm);
  is("void transformer_engine::normalization::rmsnorm_fwd_tuned_kernel", GpuWork::kNorm);
  is("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedAdamMathFunctor<float, 4>>", GpuWork::kOptimizer);
  is("void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, float>", GpuWork::kSoftmax);
  is("void at::native::nll_loss_forward_reduce_cuda_kernel_2d", GpuWork::kLoss);
  is("void at::native::(anonymous namespace)::embedding_backward_feature_kernel", GpuWork::kEmbedding);
  is("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>", GpuWork::kReduction);
  is("some_kernel_of_mine", GpuWork::kOther);
  for (int i = 0; i < kGpuWorkCount; ++i) CHECK(gpu_work_of(name_of(static_cast<GpuWork>(i))) == static_cast<GpuWork>(i));
}

TEST_CASE("kernel names: shortened to what tells them apart") {
  CHECK(short_kernel_name("void f<g(int)>(float*, h(int))") == "f<g(int)>");
  CHECK(short_kernel_name("ampere_sgemm_128x64_nn") == "ampere_sgemm_128x64_nn");
  CHECK(short_kernel_name(")") == ")");
  CHECK(short_kernel_name(std::string(500, 'k')).size() == 160);
}

TEST_CASE("kernel names: what NCCL's kernels and PyTorch's words tell") {
  const auto old = read_collective_kernel("ncclKernel_AllReduce_RING_LL128_Sum_float(ncclDevComm*, unsigned long, ncclWork*)");
  REQUIRE(old.has_value());
  CHECK(old->collective == "all_reduce");
  CHECK(old->algorithm == "ring");
  CHECK(old->protocol == "ll128");
  const auto recent = read_collective_kernel("ncclDevKernel_ReduceScatter_Sum_bf16_NVLS_SIMPLE(ncclDevKernelArgsStorage<4096ul>)");
  REQUIRE(recent.has_value());
  CHECK(recent->collective == "reduce_scatter");
  CHECK(recent->algorithm == "nvls");
  CHECK(recent->protocol == "simple");
  CHECK(read_collective_kernel("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)")->collective == "send_recv");
  CHECK_FALSE(read_collective_kernel("ampere_sgemm_128x64_nn").has_value());
  CHECK_FALSE(read_collective_kernel("ncclDevKernel_Generic(x)").has_value());
  CHECK(collective_of("_allgather_base") == "all_gather");
  CHECK(collective_of("allreduce_coalesced") == "all_reduce");
  CHECK(collective_of("_reduce_scatter_base") == "reduce_scatter");
  CHECK(collective_of("all_to_allv") == "all_to_all");
  CHECK(collective_of("send") == "send");
  CHECK(torch_element_bytes("BFloat16") == 2);
  CHECK(torch_element_bytes("Float8_e4m3fn") == 1);
  CHECK_FALSE(torch_element_bytes("Quaternion").has_value());
  for (const char* name : {"ProfilerStep#12", "iteration 3", "step_7", "Iteration: 5", "train_step-9"}) CHECK(is_step_name(name));
  for (const char* name : {"step", "Optimizer.step#Adam.step", "iterator", "stepwise 3"}) CHECK_FALSE(is_step_name(name));
}

TEST_SUITE_END();
