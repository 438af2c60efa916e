// app/scenario/model_choice.hpp — from a scenario's words to the models' own structs: the shape that `model:`
// names, and the strategy that `parallel:`, `batch:`, `memory:` and `training:` describe.
#pragma once

#include "models/parallel/strategy.hpp"
#include "models/workload/model_shape.hpp"
#include "sim/scenario/load.hpp"

namespace stepcast::app {

// From hf, preset or shape. Throws UserError at the key.
workload::ModelShape pick_model(const scenario::Loaded& loaded);

// Throws UserError for combinations that the planner refuses, at the keys that caused them.
parallel::Strategy pick_strategy(const scenario::Loaded& loaded, const workload::ModelShape& shape);

// The number format that the matrix products run in: the one whose peak MFU divides by.
// What is trained; empty: everything.
std::optional<workload::Adapters> pick_adapters(const scenario::Training& training);

plan::Dtype matrix_dtype(const scenario::Training& training);

}  // namespace stepcast::app
