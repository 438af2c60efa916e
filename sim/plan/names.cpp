#include "sim/plan/names.hpp"

#include <array>

#include "sim/base/check.hpp"

namespace stepcast::plan {
namespace {

template <std::size_t N>
using Words = std::array<const char*, N>;

constexpr Words<kDtypeCount> kDtypes{"fp32", "tf32", "bf16", "fp16", "fp8"};
constexpr Words<kOpClassCount> kOpClasses{"gemm",    "attention", "elementwise", "norm",
                                          "softmax", "embedding", "loss",        "optimizer"};
constexpr Words<4> kPasses{"forward", "input_grad", "weight_grad", "backward"};
constexpr Words<7> kStages{"input",         "forward",   "recompute",      "backward",
                           "gradient_sync", "optimizer", "weight_gradient"};
constexpr Words<6> kPurposes{"tensor", "pipeline", "data", "expert", "context", "offload"};
constexpr Words<6> kCollectives{"all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "send_receive"};
constexpr Words<5> kCopies{"host_to_device", "device_to_host", "device_to_device", "nvme_to_host", "host_to_nvme"};
constexpr Words<7> kStreams{"compute", "communication", "host_to_device", "device_to_host", "host", "io", "issue"};
constexpr Words<5> kMemories{"device", "pinned_host", "pageable_host", "managed", "nvme"};
constexpr Words<kCategoryCount> kCategories{"parameters",  "gradients", "optimizer",
                                            "activations", "workspace", "communication"};
constexpr Words<kAxisCount> kAxes{"tp", "cp", "ep", "dp", "pp"};
constexpr Words<std::variant_size_v<Body>> kOpcodes{"compute",    "collective", "send", "recv",   "copy", "host_compute",
                                                    "load_batch", "alloc",      "free", "record", "wait"};

constexpr Words<3> kVolumeForms{"receivers", "senders", "pairs"};

template <class Enum>
const char* word_of(Enum value) {
  const auto words = names<Enum>();
  const auto index = static_cast<std::size_t>(value);
  SIM_CHECK(index < words.size(), index);
  return words[index];
}

}  // namespace

template <> std::span<const char* const> names<Dtype>() { return kDtypes; }
template <> std::span<const char* const> names<OpClass>() { return kOpClasses; }
template <> std::span<const char* const> names<Pass>() { return kPasses; }
template <> std::span<const char* const> names<Stage>() { return kStages; }
template <> std::span<const char* const> names<Purpose>() { return kPurposes; }
template <> std::span<const char* const> names<CollectiveKind>() { return kCollectives; }
template <> std::span<const char* const> names<CopyKind>() { return kCopies; }
template <> std::span<const char* const> names<StreamKind>() { return kStreams; }
template <> std::span<const char* const> names<Memory>() { return kMemories; }
template <> std::span<const char* const> names<Category>() { return kCategories; }
template <> std::span<const char* const> names<Axis>() { return kAxes; }
template <> std::span<const char* const> names<VolumeForm>() { return kVolumeForms; }
std::span<const char* const> opcodes() { return kOpcodes; }

const char* name_of(Dtype dtype) { return word_of(dtype); }
const char* name_of(OpClass op) { return word_of(op); }
const char* name_of(Pass pass) { return word_of(pass); }
const char* name_of(Stage stage) { return word_of(stage); }
const char* name_of(Purpose purpose) { return word_of(purpose); }
const char* name_of(CollectiveKind kind) { return word_of(kind); }
const char* name_of(CopyKind kind) { return word_of(kind); }
const char* name_of(StreamKind kind) { return word_of(kind); }
const char* name_of(Memory memory) { return word_of(memory); }
const char* name_of(Category category) { return word_of(category); }
const char* name_of(Axis axis) { return word_of(axis); }
const char* name_of(VolumeForm form) { return word_of(form); }
const char* opcode_of(const Body& body) { return kOpcodes[body.index()]; }

}  // namespace stepcast::plan
