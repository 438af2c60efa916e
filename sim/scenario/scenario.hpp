// sim/scenario/scenario.hpp — what a scenario file says, as plain structs. Each struct lists its
// keys once, in visit(): that list reads the file, prints the effective scenario, writes the JSON
// Schema, the reference page and the starter file. Defaults here are the defaults of the file.
// load.hpp reads one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/scenario/cluster_section.hpp"
#include "sim/scenario/model_section.hpp"
#include "sim/scenario/node.hpp"
#include "sim/scenario/training_sections.hpp"

namespace stepcast::scenario {

struct Scenario {
  std::int64_t schema = 1;
  std::string name;
  std::string description;
  Model model;
  Cluster cluster;
  Parallel parallel;
  Batch batch;
  MemoryPolicy memory;
  Training training;
  Communication communication;
  std::optional<std::string> profile;
  std::int64_t seed = 1;
  std::vector<Node> variants;  // as written: a name and the keys that differ; load_variants applies them

  template <class V>
  void visit(V& v) {
    v.key("schema", schema, "Version of this file format.", only_version(1));
    v.key("name", name, "What the run is called in tables and reports.",
          required().not_empty().example("my-first-forecast"));
    v.key("description", description, "A sentence for readers.");
    v.key("model", model, "What is trained.", required());
    v.key("cluster", cluster, "The machine it runs on.", required());
    v.key("parallel", parallel, "How the model is cut over the GPUs.");
    v.key("batch", batch, "How many sequences a step takes.", required());
    v.key("memory", memory, "What is kept, and what is computed again.");
    v.key("training", training, "Number formats and optimizer.");
    v.key("communication", communication, "Choices of the collective library.");
    v.key("profile", profile, "Calibration profile, from this file's folder or the working folder. Default: the GPU's own.",
          not_empty().example("my-profile.yaml"));
    v.key("seed", seed, "Seed of everything random; the same seed gives the same result.", at_least(0));
    v.key("variants", variants, "Scenarios to compare: each a name and the keys in which it differs from this file.",
          example("[{name: two-nodes, cluster: {nodes: 2, fabric: {nic: ib-ndr-400}}, parallel: {dp: 2}}]"));
  }
  friend bool operator==(const Scenario&, const Scenario&) = default;
};

}  // namespace stepcast::scenario
