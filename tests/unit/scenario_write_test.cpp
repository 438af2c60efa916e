#include <map>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "sim/scenario/load.hpp"
#include "sim/scenario/read.hpp"
#include "sim/scenario/write.hpp"
#include "tests/support/source_dir.hpp"

using namespace stepcast;
using namespace stepcast::scenario;

TEST_SUITE_BEGIN("unit");

namespace {

struct Sample {
  Duration latency = Duration::nanoseconds(1500);
  Bandwidth rate = Bandwidth::from_si(50e9);
  FlopRate peak = FlopRate::from_si(989e12);
  Bytes memory = Bytes{80LL << 30};
  std::vector<std::int64_t> sizes{1, 2};
  std::vector<Batch> batches{{8, 1}, {16, 2}};
  std::map<std::string, std::string> notes{{"a: b", "- c"}, {"d", ""}};
  std::optional<double> share;
  template <class V>
  void visit(V& v) {
    v.key("latency", latency, "L.");
    v.key("rate", rate, "R.", above(0));
    v.key("peak", peak, "P.");
    v.key("memory", memory, "M.");
    v.key("sizes", sizes, "S.");
    v.key("batches", batches, "B.");
    v.key("notes", notes, "N.");
    v.key("share", share, "Sh.");
  }
  friend bool operator==(const Sample&, const Sample&) = default;
};

}  // namespace

TEST_CASE("scenario: the effective form is YAML a person would write") {
  CHECK(print_effective(Sample{}) ==
        "latency: 1.5 us\n"
        "rate: 50 GB/s\n"
        "peak: 989 TFLOP/s\n"
        "memory: 80 GiB\n"
        "sizes: [1, 2]\n"
        "batches:\n"
        "  - {global: 8, micro: 1}\n"
        "  - {global: 16, micro: 2}\n"
        "notes:\n"
        "  \"a: b\": \"- c\"\n"
        "  d: \"\"\n");
  Sample changed;
  changed.latency = Duration::picoseconds(123'456'789);
  changed.rate = Bandwidth::from_si(1.0 / 3.0);
  changed.memory = Bytes{12'345'678'901};
  changed.share = 0.1;
  CHECK(read_yaml_text<Sample>(print_effective(changed), "p.yaml") == changed);
}

TEST_CASE("scenario: print and read give the same scenario, shipped configs") {
  for (const char* name : {"quickstart", "llama3-70b-64xh100", "llama3-405b-16384xh100", "interconnect-70b"}) {
    CAPTURE(name);
    for (const Loaded& loaded : load_variants(std::string{STEPCAST_SOURCE_DIR "/configs/"} + name + ".yaml")) {
      const std::string printed = print_effective(loaded.scenario);
      CHECK(load_scenario_text(printed, "p.yaml").scenario == loaded.scenario);
    }
    const Loaded whole = load_scenario(std::string{STEPCAST_SOURCE_DIR "/configs/"} + name + ".yaml");
    CHECK(load_scenario_text(print_effective(whole.scenario), "p.yaml").scenario == whole.scenario);
  }
}

TEST_CASE("scenario: the starter loads as it stands and tells every key") {
  const std::string text = starter_scenario();
  const Loaded starter = load_scenario_text(text, "new.yaml");
  CHECK(starter.scenario.parallel.tp == 8);
  CHECK(starter.scenario.cluster.node == "dgx-h100");
  // Apart from its examples it says nothing but the defaults.
  CHECK(starter.scenario.parallel.bucket == Parallel{}.bucket);
  CHECK(starter.scenario.memory == MemoryPolicy{});
  for (const char* key : {"hf:", "shape:", "kv_heads:", "fabric:", "oversubscription:", "shard_group:", "variants:", "profile:"}) {
    CAPTURE(key);
    CHECK(text.find(key) != std::string::npos);
  }
}

TEST_CASE("scenario: a section of the starter can be switched on by removing its '#'") {
  std::string text = starter_scenario();
  const std::size_t fabric = text.find("# fabric:");
  REQUIRE(fabric != std::string::npos);
  // The commented block: its head and the lines below it that start with '#' and are deeper.
  std::size_t line = fabric;
  while (line != std::string::npos && text.compare(line, 2, "# ") == 0) {
    text.erase(line, 2);
    const std::size_t next = text.find('\n', line);
    line = next == std::string::npos ? next : text.find_first_not_of(' ', next + 1);
    if (line != std::string::npos && text.compare(line, 4, "#   ") != 0) break;
  }
  CHECK(load_scenario_text(text, "new.yaml").scenario.cluster.fabric.has_value());
}

TEST_CASE("scenario: JSON Schema") {
  const auto schema = nlohmann::json::parse(scenario_json_schema());
  CHECK(schema["$schema"] == "https://json-schema.org/draft/2020-12/schema");
  CHECK(schema["additionalProperties"] == false);
  CHECK(schema["required"] == nlohmann::json({"name", "model", "cluster", "batch"}));
  const auto& parallel = schema["properties"]["parallel"]["properties"];
  CHECK(parallel["tp"]["minimum"] == 1);
  CHECK(parallel["schedule"]["enum"] == nlohmann::json({"gpipe", "1f1b", "1f1b-overlap", "interleaved", "zb-h1", "zb-h2", "zb-v", "v-half",
                                                        "v-min", "dualpipe", "dualpipe-v", "file"}));
  CHECK(parallel["schedule"]["default"] == "1f1b");
  CHECK(parallel["bucket"]["type"] == "string");
  CHECK(parallel["sequence_parallel"]["default"] == false);
  const auto& variant = schema["properties"]["variants"]["items"];
  CHECK(variant["required"] == nlohmann::json({"name"}));
  CHECK(!variant["properties"]["model"].contains("required"));
  CHECK(!variant["properties"].contains("variants"));
}

TEST_SUITE_END();
