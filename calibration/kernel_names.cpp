#include "calibration/kernel_names.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>
#include <vector>

#include "sim/base/text.hpp"

namespace stepcast::calibration {
namespace {

struct Row {
  GpuWork work;
  std::initializer_list<const char*> fragments;  // lower case
};

// The order matters: "flash_bwd_..._layernorm" does not occur, "softmax" inside an attention kernel does.
const std::array kTable{
    Row{GpuWork::kCollective, {"nccl", "rccl", "all_reduce", "allreduce", "cross_device_reduce", "all_gather", "allgather", "reduce_scatter", "reducescatter",
                               "all_to_all", "alltoall", "nvshmem", "deep_ep"}},
    Row{GpuWork::kAttention, {"flash", "fmha", "attention", "attn", "sdpa", "mha_", "flashmla", "paged_"}},
    Row{GpuWork::kEmbedding, {"embedding", "embbag", "indexselect", "index_select"}},
    Row{GpuWork::kOptimizer, {"adam", "multi_tensor", "adagrad", "lamb_", "fusedsgd", "sgd_kernel", "adafactor", "muon", "newton_schulz"}},
    Row{GpuWork::kLoss, {"cross_entropy", "crossentropy", "nll_loss", "nllloss", "log_softmax", "logsoftmax", "softmax_xent", "softmaxforward<logsoftmax"}},
    Row{GpuWork::kSoftmax, {"softmax"}},
    Row{GpuWork::kNorm, {"layer_norm", "layernorm", "rms_norm", "rmsnorm", "batch_norm", "batchnorm", "group_norm", "groupnorm", "rowwisemoments", "gammabeta",
                         "bn_fw", "bn_bw", "ln_fwd", "ln_bwd", "normalization"}},
    Row{GpuWork::kConvolution, {"convolution", "conv1d", "conv2d", "conv3d", "_conv_", "implicit_gemm", "fprop", "dgrad", "wgrad", "winograd", "scudnn",
                                "nchwtonhwc", "nhwctonchw", "im2col", "cudnn::cnn", "miopen"}},
    Row{GpuWork::kGemm, {"gemm", "gemv", "cijk_", "matmul", "nvjet", "xmma", "s16816", "s1688", "tensorop", "splitk", "cublas", "_mm_", "wgmma", "hipblaslt",
                         "epilogue::impl"}},
    // A kernel that only moves elements is elementwise work: it reads and writes each once.
    Row{GpuWork::kElementwise, {"elementwise", "pointwise", "triton_poi", "catarray", "copy", "fill", "gelu", "silu", "swiglu", "relu", "dropout", "rotary", "rope_",
                                "_rope", "cast", "transpose", "permute", "activation", "quantize", "bias_", "tensor_add", "op_tensor", "addtensor"}},
    Row{GpuWork::kReduction, {"reduce", "reduction", "triton_red", "triton_per", "norm_"}},
};

constexpr std::array<const char*, kGpuWorkCount> kNames{"gemm",       "attention", "elementwise", "norm",   "softmax", "embedding", "loss", "optimizer", "convolution",
                                                        "reduction",  "collective", "copy",       "memset", "graph",   "other",     "step", "annotation"};

std::string lower(std::string_view text) {
  std::string result{text};
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

constexpr std::size_t kLongestName = 160;

// NCCL's spellings, as they stand between underscores.
constexpr std::array<std::pair<const char*, const char*>, 9> kCollectives{{{"allreduce", "all_reduce"},
                                                                          {"allgather", "all_gather"},
                                                                          {"reducescatter", "reduce_scatter"},
                                                                          {"broadcast", "broadcast"},
                                                                          {"reduce", "reduce"},
                                                                          {"sendrecv", "send_recv"},
                                                                          {"alltoall", "all_to_all"},
                                                                          {"alltoallv", "all_to_all"},
                                                                          {"alltoallpivot", "all_to_all"}}};
constexpr std::array kAlgorithms{"ring", "tree", "nvls", "nvlstree", "collnetdirect", "collnetchain", "collnet", "pat"};
constexpr std::array kProtocols{"ll", "ll128", "simple"};

}  // namespace

const char* name_of(GpuWork work) { return kNames[static_cast<std::size_t>(work)]; }

std::optional<GpuWork> gpu_work_of(std::string_view name) {
  const auto at = std::find(kNames.begin(), kNames.end(), name);
  if (at == kNames.end()) return std::nullopt;
  return static_cast<GpuWork>(at - kNames.begin());
}

GpuWork classify_kernel(std::string_view name) {
  const std::string text = lower(name);
  for (const Row& row : kTable) {
    for (const char* fragment : row.fragments) {
      if (text.find(fragment) != std::string::npos) return row.work;
    }
  }
  return GpuWork::kOther;
}

std::string short_kernel_name(std::string_view name) {
  if (name.starts_with("void ")) name.remove_prefix(5);
  if (name.ends_with(")")) {  // the arguments: up to the bracket that matches the last one
    int depth = 0;
    for (std::size_t i = name.size(); i-- > 1;) {
      if (name[i] == ')') ++depth;
      if (name[i] == '(' && --depth == 0) {
        name = name.substr(0, i);
        break;
      }
    }
  }
  if (name.size() <= kLongestName) return std::string{name};
  return std::string{name.substr(0, kLongestName - 3)} + "...";
}

std::optional<CollectiveName> read_collective_kernel(std::string_view name) {
  const std::size_t at = name.find("ccl");  // ncclKernel_, ncclDevKernel_, ncclDevFunc_, rcclKernel_
  if (at == std::string_view::npos) return std::nullopt;
  CollectiveName result;
  const std::string text = lower(name.substr(at, name.find('(', at) - at));
  for (const std::string& word : split(text, '_')) {
    const auto is = [&](const char* other) { return word == other; };
    if (result.collective.empty()) {
      const auto found = std::find_if(kCollectives.begin(), kCollectives.end(), [&](const auto& c) { return word == c.first; });
      if (found != kCollectives.end()) result.collective = found->second;
      continue;
    }
    if (result.algorithm.empty() && std::any_of(kAlgorithms.begin(), kAlgorithms.end(), is)) result.algorithm = word;
    if (result.protocol.empty() && std::any_of(kProtocols.begin(), kProtocols.end(), is)) result.protocol = word;
  }
  if (result.collective.empty()) return std::nullopt;
  return result;
}

std::string collective_of(std::string_view word) {
  std::string plain;
  for (const char c : lower(word)) {
    if (c != '_' && c != ' ') plain += c;
  }
  for (const auto& [start, name] : {std::pair{"allreduce", "all_reduce"}, std::pair{"allgather", "all_gather"}, std::pair{"reducescatter", "reduce_scatter"},
                                    std::pair{"alltoall", "all_to_all"}, std::pair{"broadcast", "broadcast"}}) {
    if (plain.starts_with(start)) return name;
  }
  return lower(word);
}

std::optional<std::int64_t> torch_element_bytes(std::string_view dtype) {
  const std::string word = lower(dtype);
  if (word == "double" || word == "long" || word == "complexfloat") return 8;
  if (word == "float" || word == "int") return 4;
  if (word == "half" || word == "bfloat16" || word == "short") return 2;
  if (word == "byte" || word == "char" || word == "bool" || word.starts_with("float8_")) return 1;
  return std::nullopt;
}

bool is_step_name(std::string_view name) {
  const std::string word = lower(name);
  for (const std::string_view start : {"profilerstep", "iteration", "iter", "train_step", "training_step", "global_step", "step"}) {
    if (!word.starts_with(start)) continue;
    std::size_t i = start.size();
    while (i < word.size() && (word[i] == ' ' || word[i] == '#' || word[i] == '_' || word[i] == ':' || word[i] == '-')) ++i;
    if (i < word.size() && std::all_of(word.begin() + static_cast<std::ptrdiff_t>(i), word.end(), [](char c) { return c >= '0' && c <= '9'; })) return true;
  }
  return false;
}

}  // namespace stepcast::calibration
