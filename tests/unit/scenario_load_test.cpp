#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "sim/scenario/load.hpp"
#include "tests/support/source_dir.hpp"

using namespace stepcast;
using namespace stepcast::scenario;

TEST_SUITE_BEGIN("unit");

namespace {

const std::string kConfigs = STEPCAST_SOURCE_DIR "/configs/";

const std::string kText =
    "name: base\n"
    "model: {preset: llama3-8b, sequence: 4096}\n"
    "cluster: {nodes: 1, node: dgx-h100, gpus_per_node: 8}\n"
    "parallel: {tp: 8}\n"
    "batch: {global: 8}\n";

std::string error_of(const std::string& text, const std::vector<std::string>& sets = {}) {
  try {
    load_variants_text(text, "s.yaml", sets);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("scenario: the shipped configs load") {
  const Loaded quick = load_scenario(kConfigs + "quickstart.yaml");
  CHECK(quick.scenario.model.sequence == 8192);
  REQUIRE(quick.scenario.model.hf);
  CHECK(*quick.scenario.model.hf == kConfigs + "hf/llama3-8b.json");
  CHECK(load_scenario(kConfigs + "llama3-70b-64xh100.yaml").scenario.parallel.pp == 4);
  CHECK(load_scenario(kConfigs + "llama3-405b-16384xh100.yaml").scenario.cluster.nodes == 2048);
}

TEST_CASE("scenario: variants are full scenarios with their own keys on top") {
  const auto variants = load_variants(kConfigs + "interconnect-70b.yaml");
  REQUIRE(variants.size() == 3);
  CHECK(variants[0].variant == "eth-10");
  CHECK(variants[0].scenario.name == "llama3-70b-interconnect/eth-10");
  CHECK(variants[1].scenario.cluster.fabric->nic == "roce-100");
  CHECK(variants[2].scenario.cluster.fabric->preset == "rail-clos");
  CHECK(variants[2].scenario.variants.empty());
  CHECK(variants[0].scenario.cluster.fabric->nics_per_node == 1);
  // Only the card differs.
  Scenario a = variants[1].scenario;
  a.name = variants[2].scenario.name;
  a.cluster.fabric->nic = variants[2].scenario.cluster.fabric->nic;
  CHECK(a == variants[2].scenario);
}

TEST_CASE("scenario: a file without variants is its own only variant") {
  const auto variants = load_variants_text(kText, "s.yaml");
  REQUIRE(variants.size() == 1);
  CHECK(variants[0].variant.empty());
  CHECK(variants[0].scenario.name == "base");
}

TEST_CASE("scenario: --set changes, makes sections, and is named in errors") {
  const Loaded set = load_scenario_text(kText, "s.yaml", {"parallel.tp=4", "parallel.dp=2", "memory.recompute=full", "name=other"});
  CHECK(set.scenario.parallel.tp == 4);
  CHECK(set.scenario.memory.recompute == RecomputePolicy::kFull);
  CHECK(set.scenario.name == "other");
  CHECK(error_of(kText, {"parallel.tp=x"}) ==
        "--set parallel.tp=x: error: parallel.tp: not a number\n"
        "  expected: a whole number from 1 to 1000000\n"
        "  got:      x");
  CHECK(has(error_of(kText, {"paralel.tp=4"}), "--set paralel.tp=4: error: paralel: unknown key"));
  CHECK(has(error_of(kText, {"paralel.tp=4"}), "one of batch, cluster"));
  CHECK(has(error_of(kText, {"parallel.zerro=1"}), "did you mean 'zero'?"));
  CHECK(has(error_of(kText, {"parallel.tp"}), "--set parallel.tp: error: no key and value"));
  CHECK(has(error_of(kText, {"parallel..tp=1"}), "not a path"));
  CHECK(has(error_of(kText, {"parallel.tp=[1"}), "--set parallel.tp=[1: error: the bracket '[' is never closed"));
  CHECK(has(error_of(kText, {"variants[0].name=x"}), "no such item"));
  // The other place of a cross-field error may be the command line.
  CHECK(has(error_of(kText, {"parallel.dp=3"}), "--set parallel.dp=3: error: parallel.dp: the workers do not match the GPUs"));
  CHECK(has(error_of(kText + "parallel2: 1\n", {}), "s.yaml:6:1: error: parallel2: unknown key"));
}

TEST_CASE("scenario: --set reaches into variants, and variants keep their own keys") {
  const std::string text = kText + "variants:\n  - {name: a, batch: {global: 16}}\n  - {name: b}\n";
  const auto variants = load_variants_text(text, "s.yaml", {"variants[1].name=c", "batch.global=24"});
  REQUIRE(variants.size() == 2);
  CHECK(variants[0].scenario.batch.global == 16);
  CHECK(variants[1].variant == "c");
  CHECK(variants[1].scenario.batch.global == 24);
}

TEST_CASE("scenario: mistakes in variants stand at their own lines") {
  const std::string text = kText +
                           "variants:\n"
                           "  - {name: a, batch: {globl: 16}}\n"
                           "  - {name: a}\n"
                           "  - {parallel: {tp: 8}}\n"
                           "  - 7\n"
                           "  - {name: d, cluster: {nodes: 2, fabric: {nic: x}}}\n";
  const std::string error = error_of(text);
  CHECK(has(error, "s.yaml:7:23: error: variants[0].batch.globl: unknown key"));
  CHECK(has(error, "s.yaml:8:6: error: variants[1].name: a second variant called 'a'"));
  CHECK(has(error, "s.yaml:9:5: error: variants[2].name: missing key"));
  CHECK(has(error, "s.yaml:10:5: error: variants[3]: wrong kind of value"));
  CHECK(has(error, "s.yaml:4:12: error: parallel.tp: the workers do not match the GPUs (variant d)"));
}

TEST_CASE("scenario: a mistake of the base is told once, not once a variant") {
  const std::string error = error_of(kText + "memori: {}\nvariants: [{name: a}, {name: b}]\n");
  CHECK(error.find("unknown key") == error.rfind("unknown key"));
}

TEST_CASE("scenario: a base that only its variants complete") {
  const std::string text =
      "name: base\n"
      "model: {preset: llama3-8b, sequence: 4096}\n"
      "cluster: {nodes: 2, node: dgx-h100}\n"
      "batch: {global: 8}\n"
      "variants: [{name: a, cluster: {fabric: {nic: x}}}]\n";
  CHECK(load_variants_text(text, "s.yaml").size() == 1);
  CHECK_THROWS_AS(load_scenario_text(text, "s.yaml"), UserError);
}

TEST_CASE("scenario: cross-field errors name both keys and both lines") {
  const std::string text =
      "name: x\n"
      "model:\n"
      "  preset: llama3-8b\n"
      "  hf: a.json\n"
      "  sequence: 4096\n"
      "cluster:\n"
      "  nodes: 2\n"
      "  node: dgx-h100\n"
      "parallel:\n"
      "  dp: 4\n"
      "  cp: 2\n"
      "  shard_group: 3\n"
      "  sequence_parallel: true\n"
      "  order: tp-pp-dp\n"
      "batch:\n"
      "  global: 6\n";
  CHECK(error_of(text) ==
        "s.yaml:3:3: error: model.preset: more than one model is named\n"
        "  expected: exactly one of model.hf, model.preset, model.shape\n"
        "  got:      model.hf, line 4; model.preset, line 3\n"
        "s.yaml:6:1: error: cluster.fabric: missing key\n"
        "  expected: the network between the 2 nodes (cluster.nodes, line 7)\n"
        "  hint:     fabric: {preset: rail-clos}\n"
        "s.yaml:12:3: error: parallel.shard_group: nothing is sharded\n"
        "  expected: zero from 1 to 3 (parallel.zero, default), or no such key\n"
        "  got:      3\n"
        "s.yaml:12:3: error: parallel.shard_group: 3 does not divide the replicas\n"
        "  expected: a divisor of 8 = dp 4 (parallel.dp, line 10) x cp 2 (parallel.cp, line 11)\n"
        "  got:      3\n"
        "s.yaml:13:3: error: parallel.sequence_parallel: needs tensor parallelism\n"
        "  expected: tp above 1 (parallel.tp, default), or false\n"
        "  got:      true\n"
        "s.yaml:14:3: error: parallel.order: not an order of the five axes\n"
        "  expected: tp, cp, ep, dp and pp once each, such as tp-cp-ep-dp-pp\n"
        "  got:      tp-pp-dp\n"
        "s.yaml:16:3: error: batch.global: 6 sequences do not split into whole micro-batches\n"
        "  expected: a multiple of 4 = dp 4 (parallel.dp, line 10) x micro 1 (batch.micro, default)\n"
        "  got:      6\n"
        "  hint:     4 or 8");
}

TEST_CASE("scenario: positions fall back to the nearest given ancestor") {
  const Loaded loaded = load_scenario_text(kText, "s.yaml");
  CHECK(loaded.where.of("parallel.tp").line == 4);
  CHECK(loaded.where.of("parallel.tp").column == 12);
  CHECK(loaded.where.of("parallel.dp").column == 1);
  CHECK(loaded.where.of("memory.recompute").line == 1);
  CHECK(loaded.where.cite("parallel.tp") == "parallel.tp, line 4");
  CHECK(loaded.where.cite("parallel.dp") == "parallel.dp, default");
}

TEST_SUITE_END();
