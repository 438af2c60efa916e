// `stepcast list`: the catalogue, each figure with the kind of evidence behind it.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "app/commands/commands.hpp"
#include "app/scenario/hardware_shelf.hpp"
#include "models/workload/presets.hpp"
#include "sim/base/file.hpp"
#include "sim/base/text.hpp"

namespace stepcast::app {
namespace {

// One letter behind the figure; the legend explains.
char mark(topology::Basis basis) {
  switch (basis) {
    case topology::Basis::kMeasured: return 'm';
    case topology::Basis::kDatasheet: return 'd';
    case topology::Basis::kPublished: return 'p';
    case topology::Basis::kAssumed: return 'a';
  }
  return '?';
}

template <class T>
std::string cell(const topology::Figure<T>& figure, const std::string& text) {
  return fmt::format("{} {}", text, mark(figure.basis));
}

std::string rate(const std::optional<topology::Figure<FlopRate>>& figure) {
  return figure ? cell(*figure, fmt::format("{:.0f}", figure->value.si() / 1e12)) : "-";
}

std::string gigabytes(Bandwidth bandwidth) { return fmt::format("{:.4g}", bandwidth.si() / 1e9); }

std::string gpus_table(const topology::Catalogue& catalogue, const Terminal& terminal) {
  Table table{{"name", "memory_GiB", "memory_GB/s", "bf16_TFLOP/s", "fp16_TFLOP/s", "fp8_TFLOP/s", "tf32_TFLOP/s",
               "SMs", "scale-up_GB/s", "power_W", "title"}};
  for (const auto& [name, gpu] : catalogue.gpus) {
    table.add({name, cell(gpu.memory, fmt::format("{:.4g}", gpu.memory.value.si() / (1 << 30))),
               cell(gpu.memory_bandwidth, gigabytes(gpu.memory_bandwidth.value)), rate(gpu.bf16), rate(gpu.fp16),
               rate(gpu.fp8), rate(gpu.tf32), cell(gpu.sm_count, std::to_string(gpu.sm_count.value)),
               gpu.scale_up ? cell(*gpu.scale_up, gigabytes(gpu.scale_up->value)) : "-",
               cell(gpu.power_limit, fmt::format("{:.0f}", gpu.power_limit.value.si())), gpu.title});
  }
  return table.render(terminal, "  ");
}

std::string nics_table(const topology::Catalogue& catalogue, const Terminal& terminal) {
  Table table{{"name", "line_rate", "efficiency", "latency", "switch_latency", "title"}};
  for (const auto& [name, nic] : catalogue.nics) {
    table.add({name, cell(nic.line_rate, human_bit_rate(nic.line_rate.value)),
               cell(nic.efficiency, fmt::format("{:.3g}", nic.efficiency.value)),
               cell(nic.latency, human_duration(nic.latency.value)),
               cell(nic.switch_latency, human_duration(nic.switch_latency.value)), nic.title});
  }
  return table.render(terminal, "  ");
}

std::string nodes_table(const topology::Catalogue& catalogue, const Terminal& terminal) {
  Table table{{"name", "GPUs", "gpu", "NICs", "nic", "PCIe_GB/s", "cores", "host_memory_GiB", "title"}};
  for (const auto& [name, node] : catalogue.nodes) {
    table.add({name, std::to_string(node.gpus), node.gpu, std::to_string(node.nics), node.nic,
               cell(node.pcie_bandwidth, gigabytes(node.pcie_bandwidth.value)),
               cell(node.cpu_cores, std::to_string(node.cpu_cores.value)),
               cell(node.host_memory, fmt::format("{:.0f}", node.host_memory.value.si() / (1 << 30))), node.title});
  }
  return table.render(terminal, "  ");
}

std::string models_table(const Terminal& terminal) {
  Table table{{"name", "parameters", "layers", "hidden", "heads", "kv_heads", "ffn", "vocab", "source"}};
  for (const workload::Preset& preset : workload::list_presets()) {
    const workload::ModelShape& s = preset.shape;
    table.add({s.name, human_count(static_cast<double>(workload::count_parameters(s).total)), std::to_string(s.layers),
               std::to_string(s.hidden), std::to_string(s.heads), std::to_string(s.kv_heads), std::to_string(s.ffn),
               std::to_string(s.vocab), preset.source});
  }
  return table.render(terminal, "  ");
}

Status list(const Invocation& invocation, Session& session) {
  const auto wants = [&](const std::string& kind) {
    const auto& words = invocation.operands;
    return words.empty() || std::find(words.begin(), words.end(), kind) != words.end();
  };
  const topology::Catalogue catalogue = load_catalogue(session.data);
  std::string text;
  if (wants("gpus")) text += "GPUs (dense rates, per direction)\n" + gpus_table(catalogue, session.terminal) + '\n';
  if (wants("nics")) text += "NICs\n" + nics_table(catalogue, session.terminal) + '\n';
  if (wants("nodes")) text += "Nodes\n" + nodes_table(catalogue, session.terminal) + '\n';
  if (wants("models")) text += "Models\n" + models_table(session.terminal) + '\n';
  if (wants("gpus") || wants("nics") || wants("nodes")) {
    text += "Behind a figure: m measured, d datasheet, p published, a assumed; sources are in topologies/data.\n";
  }
  write_file("-", text);
  return Status::kDone;
}

}  // namespace

Command list_command() {
  return {.name = "list",
          .summary = "the catalogue: GPUs, NICs, nodes and models by name",
          .operands = {.usage = "[gpus|nics|nodes|models...]", .min = 0, .max = Operands::kAny,
                       .words = {"gpus", "nics", "nodes", "models"}},
          .details = "Without an argument, everything.",
          .options = {},
          .run = list};
}

}  // namespace stepcast::app
