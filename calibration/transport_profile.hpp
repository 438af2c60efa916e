// calibration/transport_profile.hpp — the figures of one transport: models/network/transport_cost.hpp has what they
// mean. One file each in calibration/profiles/transport; they hold for every network card that speaks it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/network/transport_cost.hpp"
#include "sim/base/units.hpp"
#include "sim/scenario/key.hpp"
#include "topologies/hardware.hpp"

namespace stepcast::calibration {

struct SocketProfile {
  topology::Figure<Bandwidth> core_rate;
  topology::Figure<Bandwidth> connection_rate;
  topology::Figure<std::int64_t> channels;
  template <class V>
  void visit(V& v) {
    v.key("core_rate", core_rate, "Payload that one core moves through sockets, one way.", scenario::required().above(0));
    v.key("connection_rate", connection_rate, "Payload of one TCP connection at most.", scenario::required().above(0));
    v.key("channels", channels, "Connections of a communicator at each GPU through which it enters a host.", scenario::required().between(1, 64));
  }
};

struct CongestionProfile {
  topology::Figure<double> loss;
  topology::Figure<double> per_doubling;
  template <class V>
  void visit(V& v) {
    v.key("loss", loss, "Share of a link lost as soon as two sources meet there.", scenario::required().between(0, 0.95));
    v.key("per_doubling", per_doubling, "Further share each time that their number doubles.", scenario::required().between(0, 0.5));
  }
};

struct AheadProfile {
  topology::Figure<Bytes> eager;
  topology::Figure<Bytes> buffered;
  topology::Figure<Bandwidth> copy_rate;
  template <class V>
  void visit(V& v) {
    v.key("eager", eager, "Messages up to it move before the receiver asks for them; 0: none.", scenario::required().at_least(0));
    v.key("buffered", buffered, "What a sender may have sent that nobody has received yet, and still go on; 0: it waits for the receiver.", scenario::required().at_least(0));
    v.key("copy_rate", copy_rate, "Of the copy that a message costs which came before its receive.", scenario::required().above(0));
  }
};

struct TransportProfile {
  std::int64_t schema = 1;
  std::string name;
  std::string note;
  topology::Figure<Bytes> mtu;
  topology::Figure<Bytes> headers_inside;
  topology::Figure<Bytes> headers_outside;
  topology::Figure<double> payload_share;
  topology::Figure<Duration> latency;
  topology::Figure<Duration> per_message;
  topology::Figure<Bytes> chunk;
  std::optional<SocketProfile> sockets;
  std::optional<CongestionProfile> congestion;
  std::optional<AheadProfile> ahead;
  template <class V>
  void visit(V& v) {
    v.key("schema", schema, "Format version.", scenario::only_version(1));
    v.key("name", name, "Transport: infiniband, roce, tcp, uec or shared-memory.", scenario::required().words({"infiniband", "roce", "tcp", "uec", "shared-memory"}));
    v.key("note", note, "What to know before use.");
    v.key("mtu", mtu, "Largest packet, without what headers_outside counts.", scenario::required().above(0));
    v.key("headers_inside", headers_inside, "Headers of a packet that count towards the MTU.", scenario::required().at_least(0));
    v.key("headers_outside", headers_outside, "Headers, checksums and gaps of a packet that do not.", scenario::required().at_least(0));
    v.key("payload_share", payload_share, "What large messages reach of the rate that headers leave.", scenario::required().between(0.05, 1));
    v.key("latency", latency, "Card to card without a switch, for cards whose own transport is another.", scenario::required().at_least(0));
    v.key("per_message", per_message, "Each message, beside the latency.", scenario::required().at_least(0));
    v.key("chunk", chunk, "What a copy through host memory takes in before it passes it on.", scenario::required().above(0));
    v.key("sockets", sockets, "Where the cores move the data.");
    v.key("congestion", congestion, "What congestion control loses. Default: nothing.");
    v.key("ahead", ahead, "What leaves before the receiver asks for it. Default: nothing, both sides wait.");
  }
};

// Reads infiniband.yaml, roce.yaml, ... of a folder, in order of file name. Throws UserError with all mistakes.
std::vector<TransportProfile> read_transport_profiles(const std::string& folder);
// Throws UserError when there is none of that name.
const TransportProfile& transport_profile(const std::vector<TransportProfile>& profiles, const std::string& name);

network::Framing framing_of(const TransportProfile& profile);

}  // namespace stepcast::calibration
