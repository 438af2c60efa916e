// Every tests/golden/hf/X.json is read; what comes of it must be X.txt: the shape, or the error.
// STEPCAST_UPDATE_GOLDEN=1 rewrites the texts.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "models/workload/hf_config.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"
#include "tests/support/source_dir.hpp"

using namespace stepcast;
using namespace stepcast::workload;

TEST_SUITE_BEGIN("golden");

namespace {

std::string describe(const ModelShape& s) {
  std::string text =
      fmt::format("layers {}  hidden {}  heads {}  kv {}  head {}  ffn {}  vocab {}\n", s.layers,
                  s.hidden, s.heads, s.kv_heads, s.head_dim, s.ffn, s.vocab);
  text +=
      fmt::format("{}{}  {}  norms {}  position {} {}\n", name_of(s.norm),
                  s.norm == NormKind::kLayerNorm && !s.norm_bias ? " without shift" : "",
                  name_of(s.activation), s.norms_per_layer, name_of(s.position), s.max_positions);
  std::string flags;
  const auto flag = [&](bool on, const char* name) { flags += on ? std::string{" "} + name : ""; };
  flag(s.gated_mlp, "gated");
  flag(s.tied_embeddings, "tied");
  flag(s.parallel_block, "parallel");
  flag(s.attention_bias, "attention-bias");
  flag(s.qkv_bias_only, "qkv-bias");
  flag(s.mlp_bias, "mlp-bias");
  flag(s.head_bias, "head-bias");
  flag(s.qk_norm, "qk-norm");
  flag(s.embedding_norm, "embedding-norm");
  text += "flags" + flags + "\n";
  if (s.sliding_window)
    text += fmt::format("window {} on {} layers\n", *s.sliding_window,
                        s.layer_is_sliding.empty() ? s.layers
                                                   : std::count(s.layer_is_sliding.begin(),
                                                                s.layer_is_sliding.end(), true));
  if (s.latent)
    text += fmt::format("latents {} {}  nope {}  rope {}  value {}\n", s.latent->q_rank, s.latent->kv_rank, s.latent->nope_dim,
                        s.latent->rope_dim, s.latent->value_dim);
  if (s.experts)
    text += fmt::format("experts {}  of {}  ffn {}  shared {}  on {} layers\n", s.experts->top_k, s.experts->count, s.experts->ffn,
                        s.experts->shared_ffn,
                        s.layer_has_experts.empty() ? s.layers
                                                    : std::count(s.layer_has_experts.begin(), s.layer_has_experts.end(), true));
  const ParameterCount count = count_parameters(s);
  text += fmt::format("parameters {}\n", count.total);
  if (s.experts) text += fmt::format("active {}\n", count.active);
  if (!s.note.empty()) text += "note " + s.note + "\n";
  return text;
}

std::string outcome(const std::filesystem::path& file) {
  try {
    return describe(read_hf_config(read_file(file.string()), file.filename().string()));
  } catch (const UserError& error) {
    return std::string{error.what()} + "\n";
  }
}

}  // namespace

TEST_CASE("workload: config.json samples of every family, and wrong ones") {
  const std::filesystem::path folder{STEPCAST_SOURCE_DIR "/tests/golden/hf"};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator{folder})
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  REQUIRE(files.size() >= 40);
  for (const auto& file : files) {
    CAPTURE(file.filename().string());
    std::filesystem::path expected = file;
    expected.replace_extension(".txt");
    const std::string got = outcome(file);
    if (std::getenv("STEPCAST_UPDATE_GOLDEN") != nullptr) write_file(expected.string(), got);
    CHECK(got == read_file(expected.string()));
  }
}

TEST_SUITE_END();
