// sim/scenario/transport_section.hpp — `cluster.fabric.transport`: how messages travel over the network cards.
// docs/guide/transports.md has the models.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "sim/base/units.hpp"
#include "sim/scenario/key.hpp"

namespace stepcast::scenario {

enum class TransportKind : std::uint8_t { kOwn, kInfiniBand, kRoce, kTcp, kUec };
constexpr std::array<std::pair<const char*, TransportKind>, 5> enum_words(TransportKind) {
  return {{{"own", TransportKind::kOwn}, {"infiniband", TransportKind::kInfiniBand}, {"roce", TransportKind::kRoce}, {"tcp", TransportKind::kTcp},
           {"uec", TransportKind::kUec}}};
}

enum class CongestionModel : std::uint8_t { kModelled, kIdeal };
constexpr std::array<std::pair<const char*, CongestionModel>, 2> enum_words(CongestionModel) {
  return {{{"modelled", CongestionModel::kModelled}, {"ideal", CongestionModel::kIdeal}}};
}

struct Transport {
  TransportKind kind = TransportKind::kOwn;
  std::optional<Bytes> mtu;
  std::optional<bool> gpudirect;
  std::optional<std::int64_t> socket_threads;
  std::optional<std::int64_t> sockets_per_thread;
  std::optional<std::int64_t> socket_cores;
  std::optional<Bytes> eager;
  std::optional<Bytes> buffered;
  CongestionModel congestion = CongestionModel::kModelled;

  template <class V>
  void visit(V& v) {
    v.key("kind", kind, "What the network cards speak: what the catalogue says of them (own), or infiniband, roce, tcp (NCCL_IB_DISABLE=1), uec (Ultra Ethernet).");
    v.key("mtu", mtu, "Largest packet: IP packet of tcp, payload of roce and infiniband. Default: 1500 B, 4096 B.", between(256, 65520).example("9000 B"));
    v.key("gpudirect", gpudirect,
          "Whether network cards reach GPU memory; if not, data are copied through host memory (NCCL_NET_GDR_LEVEL=LOC). Default: as the node can; never with tcp.",
          example("false"));
    v.key("socket_threads", socket_threads, "tcp: helper threads of a connection (NCCL_SOCKET_NTHREADS); 0: the progress thread alone. Default: 0.",
          between(0, 64).example("4"));
    v.key("sockets_per_thread", sockets_per_thread, "tcp: sockets that each of them serves (NCCL_NSOCKS_PERTHREAD). Default: 1.", between(1, 64).example("4"));
    v.key("socket_cores", socket_cores, "tcp: cores of a node that may move socket traffic. Default: all.", between(1, 4096).example("16"));
    v.key("eager", eager, "Messages between pipeline stages up to it move before the receiver asks for them (MPI's eager limit). Default: as the transport's profile has it, with NCCL 0.",
          example("64 KiB"));
    v.key("buffered", buffered,
          "What a sender may have sent that nobody has received, and still go on; 0: it waits for the receiver (MPI_Ssend). Default: as the transport's profile has it.",
          example("1 MiB"));
    v.key("congestion", congestion, "What congestion control leaves of links where several senders meet: by the transport's profile, or all of it (ideal).");
  }
  friend bool operator==(const Transport&, const Transport&) = default;
};

}  // namespace stepcast::scenario
