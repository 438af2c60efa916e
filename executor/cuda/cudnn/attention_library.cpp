#include "executor/cuda/cudnn/attention_library.hpp"

#include "sim/base/file.hpp"

namespace stepcast::executor::cudnn {
namespace {

std::string name_of(const kernels::FlashShape& s, plan::Dtype dtype, Pass pass) {
  std::string name = pass == Pass::kForward ? "forward" : "backward";
  name += " of " + std::to_string(s.batch) + " x " + std::to_string(s.query_length);
  if (s.kv_length != s.query_length) name += " on " + std::to_string(s.kv_length);
  name += " tokens, " + std::to_string(s.query_heads) + " heads";
  if (s.kv_heads != s.query_heads) name += " (" + std::to_string(s.kv_heads) + " of keys)";
  name += " of " + std::to_string(s.head_dim);
  if (s.causal) name += ", causal";
  return name + ", " + plan::name_of(dtype);
}

}  // namespace

AttentionLibrary AttentionLibrary::find() {
  std::string why_not;
  if (const std::optional<Api> api = load(why_not)) return AttentionLibrary{*api};
  return AttentionLibrary{why_not};
}

AttentionLibrary::AttentionLibrary(const Api& api) : api_{api} {
  if (const Status status = api.create(&handle_); status != kSuccess) {
    why_not_ = "cuDNN " + version_text(api.version()) + " does not start: " + api.error_string(status);
    api_.reset();
    handle_ = nullptr;
  }
}

AttentionLibrary::~AttentionLibrary() {
  choices_.clear();
  if (handle_ != nullptr) api_->destroy(handle_);
}

const AttentionPlan* AttentionLibrary::plan(const kernels::FlashShape& s, plan::Dtype dtype, Pass pass) {
  const auto [at, is_new] = choices_.try_emplace({s.batch, s.query_heads, s.kv_heads, s.query_length, s.kv_length, s.head_dim, s.value_dim, s.causal, s.window, dtype, pass});
  Choice& choice = at->second;
  if (!is_new) return choice.plan.get();
  choice.name = name_of(s, dtype, pass);
  if (!api_) {
    choice.why_not = why_not_;
    return nullptr;
  }
  try {
    choice.plan = std::make_unique<AttentionPlan>(*api_, Target{.handle = handle_}, s, dtype, pass);
  } catch (const Refused& refused) {
    choice.why_not = refused.what();
  }
  return choice.plan.get();
}

void AttentionLibrary::run(const AttentionPlan& plan, void* stream, const AttentionOperands& operands, void* workspace) {
  try {
    if (const Status status = api_->set_stream(handle_, stream); status != kSuccess) throw Refused(std::string{"a stream: "} + api_->error_string(status));
    plan.run(handle_, operands, workspace);
  } catch (const Refused& refused) {
    throw SystemError(std::string{"cuDNN: "} + refused.what());
  }
}

std::string AttentionLibrary::account() const {
  const std::string own = "our own kernels";
  if (!api_) return own + " (" + why_not_ + ")";
  std::string text = "cuDNN " + version_text(api_->version());
  std::string refused;
  std::size_t taken = 0;
  for (const auto& [key, choice] : choices_) {
    if (choice.plan) ++taken;
    else refused += (refused.empty() ? "" : "; ") + choice.name + ": " + choice.why_not;
  }
  if (refused.empty()) return text;
  return taken == 0 ? own + " (" + text + " takes none: " + refused + ")" : text + "; " + own + " for " + refused;
}

}  // namespace stepcast::executor::cudnn
