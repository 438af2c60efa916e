// app/network/collective_machine.hpp — a cluster ready for collectives alone: owns everything that run::Machine refers to.
#pragma once

#include <memory>
#include <string>

#include "app/scenario/hardware_shelf.hpp"
#include "models/gpu/gpu_model.hpp"
#include "sim/run/machine.hpp"

namespace stepcast::app {

class CollectiveMachine {
 public:
  // Throws UserError at the scenario's keys. `loaded` may lack a model.
  CollectiveMachine(const HardwareShelf& shelf, const scenario::Loaded& loaded);

  [[nodiscard]] const run::Machine& machine() const { return *machine_; }
  // For the cost model's parameters as a fit tries them.
  [[nodiscard]] run::Machine with(const collective::Parameters& parameters) const;
  [[nodiscard]] collective::Layout layout(std::int32_t ranks) const;
  [[nodiscard]] bool infiniband() const { return hardware_.nic.transport == topology::Transport::kInfiniBand; }
  [[nodiscard]] const std::string& gpu_title() const { return hardware_.gpu.title; }
  [[nodiscard]] Duration launch() const { return launch_; }  // host time of a call from C++
  [[nodiscard]] Duration issue() const { return issue_; }    // of each send or receive in a group

 private:
  topology::ClusterHardware hardware_;
  topology::Fabric fabric_;
  topology::Router router_;
  gpu::GpuModel gpu_;
  Duration launch_;
  Duration issue_;
  std::unique_ptr<run::Machine> machine_;
};

}  // namespace stepcast::app
