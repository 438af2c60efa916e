#include "app/forecast/forecast_json.hpp"

#include <fmt/format.h>

#include "app/cli/command_line.hpp"
#include "topologies/catalogue.hpp"

namespace stepcast::app {
namespace {

using Json = nlohmann::ordered_json;

Json breakdown_json(const Forecast& forecast) {
  Json json = Json::object();
  for (const StepPart& part : step_parts(forecast)) {
    json[part.key] = part.determined ? Json(exact_seconds(part.time)) : Json(nullptr);
  }
  return json;
}

Json peak_json(const Forecast& forecast, const run::MemoryPeak& peak) {
  Json json;
  json["stage"] = forecast.plan.programs.at(peak.program.index()).name;
  json["worker"] = peak.worker.value();
  json["total_bytes"] = peak.total.count();
  json["context_bytes"] = peak.context.count();
  json["communicators_bytes"] = peak.communicators.count();
  json["fragmentation_bytes"] = peak.fragmentation.count();
  for (int c = 0; c < plan::kCategoryCount; ++c) {
    json[fmt::format("{}_bytes", plan::name_of(static_cast<plan::Category>(c)))] =
        peak.by_category[static_cast<std::size_t>(c)].count();
  }
  json["at"] = describe_peak(forecast, peak);
  return json;
}

Json simulator_json(const Forecast& forecast) {
  Json json;
  json["wall_s"] = forecast.wall_s;
  json["events"] = forecast.result.events;
  json["workers"] = forecast.result.workers_simulated;
  json["peak_rss_bytes"] = forecast.peak_rss_bytes;
  json["version"] = version();
  json["seed"] = forecast.scenario.seed;
  json["folded"] = forecast.result.folded;
  json["fold_note"] = forecast.result.fold_note;
  json["order_fingerprint"] = fmt::format("{:016x}", forecast.result.order_fingerprint);
  json["results_fingerprint"] = fmt::format("{:016x}", forecast.result.results_fingerprint);
  return json;
}

Json uncertainty_json(const std::optional<Uncertainty>& uncertainty) {
  if (!uncertainty) return nullptr;
  Json json{{"step_time_s", uncertainty->step_s}, {"figures", uncertainty->figures}, {"influences", Json::array()}};
  for (const Influence& i : uncertainty->influences) {
    json["influences"].push_back({{"figure", i.figure}, {"basis", topology::basis_name(i.basis)}, {"value", i.value}, {"relative_deviation", i.plus_minus}, {"step_time_s", i.step_s}});
  }
  return json;
}

Json evidence_json(const Evidence& evidence) {
  return Json{{"measured", evidence.measured},
              {"datasheet", evidence.datasheet},
              {"published", evidence.published},
              {"assumed", evidence.assumed}};
}

Json links_json(const Forecast& forecast) {
  Json json = Json::array();
  for (const run::LinkLoad& link : forecast.result.busiest_links) {
    json.push_back(Json{{"name", link.name}, {"utilisation", link.utilisation}, {"carried_bytes", link.carried.count()}});
  }
  return json;
}

}  // namespace

Json memory_json(const Forecast& forecast) {
  Json json = Json::array();
  for (const run::MemoryPeak& peak : forecast.result.memory) json.push_back(peak_json(forecast, peak));
  return json;
}

Json forecast_json(const Forecast& forecast) {
  Json json;
  json["name"] = forecast.scenario.name;
  json["step_time_s"] = forecast.step_time_s();
  json["samples_per_s"] = forecast.samples_per_s();
  json["tokens_per_s"] = forecast.tokens_per_s();
  json["tokens_per_s_per_gpu"] = forecast.tokens_per_s_per_gpu();
  json["tflops_per_gpu"] = forecast.tflops_per_gpu();
  json["mfu"] = forecast.mfu();
  json["device_memory_peak_bytes"] = forecast.worst_memory().total.count();
  json["host_memory_peak_bytes"] = nullptr;
  json["fits"] = forecast.fits();
  json["energy_per_step_j"] = nullptr;
  json["average_clock_hz"] = nullptr;
  json["breakdown_s"] = breakdown_json(forecast);
  json["bottleneck"] = bottleneck_sentence(forecast);
  json["cost"] = Json{{"per_step", nullptr}, {"per_billion_tokens", nullptr}};
  json["simulator"] = simulator_json(forecast);
  json["gpus"] = forecast.gpus;
  json["parameters"] = forecast.parameters;
  json["trained_parameters"] = forecast.trained_parameters;
  json["model_flops_per_step"] = forecast.plan.work.model_flops.si();
  json["flops_convention"] = forecast.plan.work.flops_convention;
  json["peak_flops_per_gpu"] = forecast.peak.si();
  json["device_memory_bytes"] = forecast.device_memory.count();
  json["host_wait_s"] = exact_seconds(forecast.result.breakdown.host_wait);
  json["memory"] = memory_json(forecast);
  json["busiest_links"] = links_json(forecast);
  json["socket_core_s"] = exact_seconds(forecast.result.socket_time);
  json["evidence"] = evidence_json(forecast.evidence);
  json["uncertainty"] = uncertainty_json(forecast.uncertainty);
  json["extrapolated"] = forecast.extrapolated ? Json(*forecast.extrapolated) : Json(nullptr);
  json["not_determined"] = undetermined(forecast);
  json["notes"] = forecast.notes;
  return json;
}

std::string json_text(const Json& json) { return json.dump(2) + "\n"; }

}  // namespace stepcast::app
