// app/scenario/transport_choice.hpp — from `cluster.fabric.transport`, the network card and the transports' profiles to what the
// models need: what it changes of the hardware, and what messages and sockets cost.
#pragma once

#include <string>

#include "app/scenario/hardware_shelf.hpp"
#include "models/network/transport_cost.hpp"
#include "sim/scenario/load.hpp"
#include "topologies/generate.hpp"

namespace stepcast::app {

// Card, copies and cores as the transport has them. Throws UserError at keys that another transport reads.
void apply_transport(const HardwareShelf& shelf, const scenario::Loaded& loaded, topology::ClusterHardware& hardware);

network::TransportCosts pick_transports(const HardwareShelf& shelf, const scenario::Loaded& loaded, const topology::ClusterHardware& hardware);

// "TCP, MTU 1500 B, through host memory, 2 connections a network card, 1 thread": one line for people.
// `network`: by its place in Fabric::networks.
std::string transport_text(const network::TransportCosts& costs, const scenario::Cluster& cluster, const topology::ClusterHardware& hardware,
                           std::uint32_t network = 0);

// Latency of a step of a collective beyond one over InfiniBand, which NCCL's constants are for: where no profile says.
Duration step_latency(const HardwareShelf& shelf, const topology::Nic& nic);

}  // namespace stepcast::app
