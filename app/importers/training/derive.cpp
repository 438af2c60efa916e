// What a trainer's configuration leaves open, filled in: by arithmetic where it can be, by a named assumption
// where not.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "app/importers/training/training_import.hpp"
#include "sim/base/text.hpp"

namespace stepcast::app {
namespace {

constexpr const char* kUsualNode = "dgx-h100";
constexpr const char* kUsualModel = "llama3-8b";
constexpr std::int64_t kUsualSequence = 4096;

void override_with(const std::vector<std::string>& sets, TrainingImport& out) {
  for (const std::string& assignment : sets) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0)
      throw UserError(Diagnostic{.where = {}, .path = "--set " + assignment, .problem = "not an assignment", .expected = "key.path=value", .got = assignment, .hint = {}});
    out.settings[assignment.substr(0, equals)] = {assignment.substr(equals + 1), "--set", false};
  }
}

void choose_model(TrainingImport& out) {
  const bool shape = std::any_of(out.settings.begin(), out.settings.end(), [](const auto& s) { return s.first.rfind("model.shape.", 0) == 0; });
  // A model named on the command line replaces the file's.
  if (shape && (out.has("model.preset") || out.has("model.hf"))) std::erase_if(out.settings, [](const auto& s) { return s.first.rfind("model.shape.", 0) == 0; });
  if (out.has("model.hf")) {
    out.settings.erase("model.preset");
  } else if (out.unknown_model && !out.has("model.preset")) {
    std::erase_if(out.settings, [](const auto& s) { return s.first.rfind("model.shape.", 0) == 0; });
    out.remarks.push_back(fmt::format("the model is {}: --set model.preset=NAME or model.hf=config.json", *out.unknown_model));
  } else if (!shape) {
    out.assume("model.preset", kUsualModel, "the file names no model that Stepcast knows: --set model.preset=NAME or model.hf=config.json");
  }
  out.assume("model.sequence", std::to_string(kUsualSequence), "the file does not say: --set model.sequence=TOKENS");
}

// Replicas where nobody says how many GPUs there are: those that fill whole nodes, fewer if the batch is too small.
std::int64_t likely_dp(const TrainingImport& out, std::int64_t full) {
  const std::int64_t global = out.whole("batch.global", 0);
  const std::int64_t together = out.whole("batch.micro", 1) * out.accumulation.value_or(1);
  if (global == 0 || global % together != 0) return full;
  std::int64_t dp = std::min(full, global / together);
  while (global / together % dp != 0) --dp;
  return dp;
}

// DeepSpeed's offload_param is of stage 3 alone.
void drop_offloaded_parameters(TrainingImport& out) {
  const auto found = out.settings.find("memory.offload");
  if (found == out.settings.end() || found->second.origin == "--set" || out.whole("parallel.zero", 0) == 3 || std::erase(out.offload, "parameters") == 0) return;
  out.remarks.emplace_back("parameters stay on the device: they are offloaded with zero 3 only");
  if (out.offload.empty()) {
    out.settings.erase(found);
  } else {
    found->second.value = fmt::format("[{}]", join(out.offload, ", "));
  }
}

// Degrees, size and kind of the cluster.
void choose_cluster(TrainingImport& out, const topology::Catalogue& catalogue) {
  out.assume("cluster.node", kUsualNode, "the file does not say: --set cluster.node=KIND");
  const std::string node = out.settings.at("cluster.node").value;
  std::int64_t per_node = out.whole("cluster.gpus_per_node", node.ends_with(".yaml") ? 8 : topology::find_node(catalogue, node, "--set cluster.node").gpus);
  const std::int64_t model_gpus = out.whole("parallel.tp", 1) * out.whole("parallel.pp", 1) * out.whole("parallel.cp", 1);
  if (!out.has("parallel.dp")) {
    if (out.shards && *out.shards > 0) {
      out.settings["parallel.dp"] = {std::to_string(*out.shards * out.replicas.value_or(1)), "replicas x shards", false};
    } else {
      const bool by_nodes = out.has("cluster.nodes");
      const std::int64_t least = (model_gpus + per_node - 1) / per_node * per_node;
      const std::int64_t world = by_nodes ? out.whole("cluster.nodes", 1) * per_node : out.world.value_or(least);
      const std::string why = by_nodes || out.world ? fmt::format("{} GPUs / (tp x pp x cp)", world) : "the file does not say: --set cluster.nodes=N or parallel.dp=N";
      const std::int64_t full = std::max<std::int64_t>(1, world / model_gpus);
      const bool open = !by_nodes && !out.world;
      out.settings["parallel.dp"] = {std::to_string(open ? likely_dp(out, full) : full), why, open};
      if (world % model_gpus != 0) out.remarks.push_back(fmt::format("{} GPUs are no multiple of tp x pp x cp = {}", world, model_gpus));
    }
  }
  const std::int64_t dp = out.whole("parallel.dp", 1);
  if (out.replicas && *out.replicas > 1 && dp % *out.replicas == 0 && out.whole("parallel.zero", 1) > 0 && dp > *out.replicas)
    out.settings.try_emplace("parallel.shard_group", Setting{std::to_string(dp / *out.replicas), "shards of a replica (HSDP)", false});
  const std::int64_t world = model_gpus * dp;
  std::int64_t nodes = out.whole("cluster.nodes", (world + per_node - 1) / per_node);
  out.settings.try_emplace("cluster.nodes", Setting{std::to_string(nodes), fmt::format("{} GPUs", world), false});
  if (nodes * per_node != world && world % nodes == 0 && world / nodes <= per_node)
    out.settings.try_emplace("cluster.gpus_per_node", Setting{std::to_string(world / nodes), fmt::format("{} GPUs", world), false});
  if (nodes > 1) out.assume("cluster.fabric.preset", "rail-clos", "the file does not say: --set cluster.fabric.preset=NAME");
}

void choose_batch(TrainingImport& out) {
  const std::int64_t dp = out.whole("parallel.dp", 1);
  const std::int64_t accumulation = out.accumulation.value_or(1);
  if (!out.has("batch.micro")) {
    const std::int64_t global = out.whole("batch.global", 0);
    if (global > 0 && out.accumulation && global % (dp * accumulation) == 0) {
      out.settings["batch.micro"] = {std::to_string(global / (dp * accumulation)), "batch / (dp x accumulation)", false};
    } else {
      out.assume("batch.micro", "1", "the file does not say: --set batch.micro=N");
    }
  }
  const std::int64_t micro = out.whole("batch.micro", 1);
  if (!out.has("batch.global")) {
    const bool known = out.accumulation.has_value() && !out.settings.at("batch.micro").assumed;
    out.settings["batch.global"] = {std::to_string(micro * accumulation * dp), known ? "micro x accumulation x dp" : "micro x accumulation x dp, of which the file does not say all", !known};
  }
}

// DeepSpeed's buckets count elements; gradients travel in the precision of training.
void choose_bucket(TrainingImport& out) {
  if (!out.bucket_elements) return;
  const auto gradients = out.settings.find("memory.gradients");
  const auto precision = out.settings.find("training.precision");
  const std::string dtype = gradients != out.settings.end() ? gradients->second.value : precision != out.settings.end() ? precision->second.value : "bf16";
  const std::int64_t bytes = dtype == "fp32" || dtype == "tf32" ? 4 : 2;
  out.settings.try_emplace("parallel.bucket", Setting{fmt::format("{} B", *out.bucket_elements * bytes), fmt::format("{} elements of {}", *out.bucket_elements, dtype), false});
}

// DeepSpeed's ZeRO-3 gathers what a module asks for, and copies reduced gradients to an optimizer on the host by copies that block
// (docs/guide/offload.md).
void choose_waits(TrainingImport& out) {
  const auto zero = out.settings.find("parallel.zero");
  if (!out.deepspeed || zero == out.settings.end() || zero->second.value != "3") return;
  out.settings.try_emplace("parallel.gather_by_matrix", Setting{"true", "ZeRO-3 gathers what a module asks for", false});
  if (std::find(out.offload.begin(), out.offload.end(), "master") != out.offload.end())
    out.settings.try_emplace("training.host_waits", Setting{"gradients", "copied to the optimizer on the host by copies that block", false});
}

// Sections in the order of the scenario reference.
constexpr std::array kSections{"name", "model", "cluster", "parallel", "batch", "memory", "training", "communication"};

std::size_t rank_of(const std::string& path) {
  const std::string section = path.substr(0, path.find('.'));
  return static_cast<std::size_t>(std::find(kSections.begin(), kSections.end(), section) - kSections.begin());
}

}  // namespace

TrainingImport import_training(const TrainingForm& form, const std::string& text, const std::string& file, const std::vector<std::string>& sets,
                               const topology::Catalogue& catalogue) {
  TrainingImport out;
  apply_keys(form, form.read(text, file), out);
  override_with(sets, out);
  drop_offloaded_parameters(out);
  choose_model(out);
  choose_cluster(out, catalogue);
  choose_batch(out);
  choose_bucket(out);
  choose_waits(out);
  return out;
}

std::string scenario_text(const TrainingImport& import, const std::string& name, const std::string& kind, const std::string& file) {
  std::vector<std::string> paths;
  for (const auto& [path, setting] : import.settings) paths.push_back(path);
  std::stable_sort(paths.begin(), paths.end(), [](const std::string& a, const std::string& b) { return rank_of(a) < rank_of(b); });
  std::string text = fmt::format("# From {} by `stepcast import {}`.\nname: {}\n", std::filesystem::path{file}.filename().string(), kind, name);
  std::vector<std::string> open;  // sections that the last line was in
  for (const std::string& path : paths) {
    if (path == "name") continue;
    const std::vector<std::string> parts = split(path, '.');
    std::size_t common = 0;
    while (common < open.size() && common + 1 < parts.size() && open[common] == parts[common]) ++common;
    for (std::size_t depth = common; depth + 1 < parts.size(); ++depth) text += fmt::format("{:{}}{}:\n", "", 2 * depth, parts[depth]);
    open.assign(parts.begin(), parts.end() - 1);
    const Setting& setting = import.settings.at(path);
    text += fmt::format("{:{}}{}: {}  # {}{}\n", "", 2 * open.size(), parts.back(), setting.value, setting.assumed ? "assumed: " : "", setting.origin);
  }
  return text;
}

}  // namespace stepcast::app
