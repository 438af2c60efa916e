#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <string>

#include "models/workload/presets.hpp"
#include "sim/base/diagnostic.hpp"

using namespace stepcast;
using namespace stepcast::workload;

TEST_SUITE_BEGIN("unit");

namespace {

std::int64_t parameters(const char* preset) {
  return count_parameters(find_preset(preset).shape).total;
}

}  // namespace

// GPT-2 124M by hand: tokens 50257 * 768 + positions 1024 * 768 = 39'383'808; a layer: Q, K, V, O
// 4 * 768^2 + 4 * 768, MLP 8 * 768^2 + 5 * 768, two norms 4 * 768: 7'087'872; final norm 1'536.
TEST_CASE("workload: parameters of GPT-2 by part") {
  const ParameterCount count = count_parameters(find_preset("gpt2").shape);
  CHECK(count.embedding == 39'383'808);
  CHECK(layer_parameters(find_preset("gpt2").shape, 0).total == 7'087'872);
  CHECK(count.final_norm == 1'536);
  CHECK(count.head == 0);
  CHECK(count.total == 124'439'808);
}

// Totals of the released checkpoints (safetensors index or model card), to the last digit.
TEST_CASE("workload: presets have the parameters of the published checkpoints") {
  struct Published {
    const char* preset;
    std::int64_t total;
  };
  const Published published[] = {
      {"gpt2-xl", 1'557'611'200},       {"llama-7b", 6'738'415'616},
      {"llama-13b", 13'015'864'320},    {"llama-65b", 65'285'660'672},
      {"llama2-70b", 68'976'648'192},   {"llama3-8b", 8'030'261'248},
      {"llama3-70b", 70'553'706'496},   {"llama3-405b", 405'853'388'800},
      {"llama3.2-1b", 1'235'814'400},   {"llama3.2-3b", 3'212'749'824},
      {"mistral-7b", 7'241'732'096},    {"gemma-2b", 2'506'172'416},
      {"gemma-7b", 8'537'680'896},      {"gemma2-2b", 2'614'341'888},
      {"gemma2-9b", 9'241'705'984},     {"gemma2-27b", 27'227'128'320},
      {"gemma3-1b", 999'885'952},       {"qwen2.5-0.5b", 494'032'768},
      {"qwen2.5-1.5b", 1'543'714'304},  {"qwen2.5-3b", 3'085'938'688},
      {"qwen2.5-7b", 7'615'616'512},    {"qwen2.5-14b", 14'770'033'664},
      {"qwen2.5-32b", 32'763'876'352},  {"qwen2.5-72b", 72'706'203'648},
      {"qwen3-0.6b", 596'049'920},      {"qwen3-8b", 8'190'735'360},
      {"qwen3-32b", 32'762'123'264},    {"falcon-7b", 6'921'720'704},
      {"falcon-40b", 41'303'293'952},   {"phi-2", 2'779'683'840},
      {"phi-3-mini", 3'821'079'552},    {"phi-3-medium", 13'960'238'080},
      {"phi-4", 14'659'507'200},        {"phi-4-mini", 3'836'021'760},
      {"gpt-neox-20b", 20'554'567'680}, {"bloom-176b", 176'247'271'424},
  };
  for (const Published& p : published) {
    CAPTURE(p.preset);
    CHECK(parameters(p.preset) == p.total);
  }
}

// Biderman et al. 2023 (arXiv 2304.01373) table 1, total parameters.
TEST_CASE("workload: Pythia's table of parameters") {
  CHECK(parameters("pythia-70m") == 70'426'624);
  CHECK(parameters("pythia-160m") == 162'322'944);
  CHECK(parameters("pythia-410m") == 405'334'016);
  CHECK(parameters("pythia-1b") == 1'011'781'632);
  CHECK(parameters("pythia-1.4b") == 1'414'647'808);
  CHECK(parameters("pythia-2.8b") == 2'775'208'960);
  CHECK(parameters("pythia-6.9b") == 6'857'302'016);
  CHECK(parameters("pythia-12b") == 11'846'072'320);
}

// Narayanan et al. 2021, table 1: parameters in billions as printed, one decimal.
TEST_CASE("workload: Megatron's table of parameters") {
  struct Printed {
    const char* preset;
    double billions;
  };
  for (const Printed& p : {Printed{"megatron-1.7b", 1.7},
                           {"megatron-3.6b", 3.6},
                           {"megatron-7.5b", 7.5},
                           {"megatron-18b", 18.4},
                           {"megatron-39b", 39.1},
                           {"megatron-76b", 76.1},
                           {"megatron-145b", 145.6},
                           {"megatron-310b", 310.1},
                           {"megatron-530b", 529.6},
                           {"megatron-1t", 1008.0}}) {
    CAPTURE(p.preset);
    CHECK(std::round(static_cast<double>(parameters(p.preset)) / 1e8) / 10 ==
          doctest::Approx(p.billions));
  }
}

TEST_CASE("workload: preset names are distinct, each with a source and a consistent shape") {
  std::set<std::string> names;
  for (const Preset& preset : list_presets()) {
    CAPTURE(preset.shape.name);
    CHECK(names.insert(preset.shape.name).second);
    CHECK_FALSE(preset.source.empty());
    CHECK(preset.shape.heads % preset.shape.kv_heads == 0);
    CHECK((preset.shape.layer_is_sliding.empty() ||
           static_cast<std::int64_t>(preset.shape.layer_is_sliding.size()) == preset.shape.layers));
    CHECK(find_preset(preset.shape.name).shape.hidden == preset.shape.hidden);
  }
}

TEST_CASE("workload: an unknown preset names the nearest") {
  const auto message = [] {
    try {
      find_preset("llama3-8bb", {"a.yaml", 3, 10}, "model.preset");
    } catch (const UserError& error) {
      return std::string{error.what()};
    }
    return std::string{"no error"};
  };
  CHECK(message() ==
        "a.yaml:3:10: error: model.preset: no model preset of this name\n"
        "  expected: a name that `stepcast list` prints\n"
        "  got:      llama3-8bb\n"
        "  hint:     did you mean 'llama3-8b'?");
}

TEST_SUITE_END();
