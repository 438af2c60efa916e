// sim/run/routes.hpp — the links that collectives, messages and work with the host's memory of a running step take: laid when they are first used, laid again where the paths'
// policy looks at each transfer, at its load or at links that change.
//
// A folded simulation has routes of its own (FoldedLinks), which never move.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "models/network/link_network.hpp"
#include "sim/engine/engine.hpp"
#include "sim/run/groups.hpp"
#include "sim/run/link_paths.hpp"
#include "sim/run/machine.hpp"
#include "sim/run/traffic.hpp"
#include "sim/run/transport_use.hpp"

namespace stepcast::run {

class Routes {
 public:
  // `folded`: the links of one worker a stage; null: of every worker. All of these outlive the object.
  Routes(const plan::Plan& plan, const Machine& machine, const GroupTable& groups, LinkPaths& paths, const FoldedLinks* folded, const engine::Engine& engine,
         network::LinkNetwork& network)
      : plan_{plan}, machine_{machine}, groups_{groups}, paths_{paths}, folded_{folded}, engine_{engine}, network_{network}, uses_{machine.router, paths} {}

  network::RouteId of_collective(std::uint32_t communicator, const Way& way);
  // Of a worker and the memory of its host.
  network::RouteId of_host_work(RankId rank, HostWork work);
  // A new one at each call.
  network::RouteId of_message(RankId from, RankId to);
  // Before a flow of so many bytes starts, and after it has ended.
  void prepare(network::RouteId route, double bytes);
  void leave(network::RouteId route);
  // A change of the machine's paths, now.
  void change_links(std::uint32_t change);

 private:
  // Whose traffic a route carries, so that it can be laid again when paths change.
  struct Owner {
    std::uint32_t communicator = 0;
    Way way;
    std::optional<std::pair<RankId, RankId>> message;   // else the communicator's
    std::optional<std::pair<RankId, HostWork>> host;    // else that
    std::uint64_t messages = 0;                         // the transfer it was laid for; 0: many
    double largest_share = 0.0;                         // of its edges
    TimePoint idle_since;
    LinkPaths::Placed placed;                           // on the links while busy, where paths follow the load
  };
  struct Links {
    std::vector<flow::Use> uses;
    std::vector<double> sources;  // by use of the fabric's links
  };
  [[nodiscard]] static Links to_links(std::span<const BundleUse> uses);
  Links links_of(Owner& owner);
  network::RouteId lay(Owner owner);
  void move(network::RouteId route, Owner& owner);
  void add_threads(std::vector<flow::Use>& uses, std::uint32_t communicator, collective::Algorithm algorithm, std::span<const collective::Edge> edges);
  [[nodiscard]] bool is_broken(const Owner& owner) const;

  const plan::Plan& plan_;
  const Machine& machine_;
  const GroupTable& groups_;
  LinkPaths& paths_;
  const FoldedLinks* folded_;
  const engine::Engine& engine_;
  network::LinkNetwork& network_;
  UseBuilder uses_;
  std::vector<Owner> owners_;                                              // [route]; none where folded
  std::map<std::pair<std::uint32_t, Way>, network::RouteId> collective_routes_;
  std::map<std::pair<std::uint32_t, HostWork>, network::RouteId> host_routes_;  // [rank]
  std::unordered_map<std::uint32_t, flow::LinkIndex> thread_links_;        // [communicator]; lookup only
};

}  // namespace stepcast::run
