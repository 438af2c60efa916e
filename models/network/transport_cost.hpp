// models/network/transport_cost.hpp — what a transport costs beside the links that it uses: headers, messages,
// copies through host memory, sockets. Fluids see it as a latency, a cap and a link's efficiency.
//
// Model    payload over line rate by headers:  e = (m - h_in) / (m + h_out)                              (1)
//          one message of S bytes, alone, over links of rate R and latency L:
//            t = L + o + k min(S, c) / h + S / R                                                         (2)
//            half of R is reached at  n_1/2 = (L + o) R + k c R / h   (where that is more than c)        (3)
//          (2): a copy through host memory takes in a whole chunk before it passes it on; later chunks overlap.
//          sockets: a connection carries s streams served by w threads, and moves at most
//            r = min(s b, w a),  s = max(1, threads * sockets a thread),  w = max(1, threads)            (4)
//          q connections (channels) that enter a host at one GPU: s grows q-fold, and w too if there are
//          helper threads; without, the one progress thread of the process serves them all.
//          a host's cores move all its socket traffic, both ways:  sum of bytes/s <= cores * a           (5)
//          before the receiver asks for it (sim/run/channel.hpp): a message of S <= E moves as soon as it is sent; if it is there
//            first, its receive takes a copy of S / v. A sender is free where what it has sent and nobody has received
//            is at most B; else when its message is received.                                          (6)
// Symbols  m [B] MTU; h_in, h_out [B] headers inside it and around it, gaps included; o [s] per message; k copies;
//          h [B/s] rate of a copy: of the links inside the host that it crosses;
//          c [B] chunk; a [B/s] payload that one core moves through sockets; b [B/s] most of one TCP connection;
//          E [B] eager limit; B [B] buffers; v [B/s] rate of a copy out of them
// Source   (1) IEEE 802.3, RFC 791 and 9293, InfiniBand specification (headers), annex A17 (RoCEv2); (2), (3) Hockney,
//          Parallel Computing 20 (1994); chunks, channels, threads and sockets: NVIDIA/nccl src/transport/net.cc,
//          net_socket.cc; (6): MPI 4.0, 3.4 (modes of sending), open-mpi/ompi pml_ob1 (limits), NVIDIA/nccl
//          src/device/prims_simple.h (waitPeer: a sender is at most NCCL_STEPS pieces ahead of its receiver).
//          Figures with their sources: calibration/profiles/transport
// Valid    connections that stay open; messages of a chunk and more for (2)
// Ignores  slow start after idle times, interrupt moderation, NUMA placement of threads, zero-copy sends, cores that
//          other work keeps busy
// Tests    unit/transport_cost_test (worked by hand)
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/network/congestion.hpp"
#include "sim/base/units.hpp"

namespace stepcast::network {

struct Framing {
  double mtu_bytes = 0.0;
  double inside_bytes = 0.0;   // headers that count towards the MTU
  double outside_bytes = 0.0;  // that do not: link headers, checksums, preamble and gap
  [[nodiscard]] double efficiency() const { return (mtu_bytes - inside_bytes) / (mtu_bytes + outside_bytes); }  // (1)
};

struct Sockets {
  double core_rate = 0.0;        // a [B/s]
  double connection_rate = 0.0;  // b [B/s]
  std::int64_t threads = 0;      // helper threads of a connection (NCCL_SOCKET_NTHREADS); 0: the progress thread alone
  std::int64_t sockets_per_thread = 1;  // NCCL_NSOCKS_PERTHREAD
  std::int64_t channels = 2;     // connections of a communicator at each GPU through which it enters a host

  // Of `connections` that one process serves, one way [B/s]: (4).
  [[nodiscard]] double rate(std::int64_t connections) const;
};

// What leaves before the receiver asks for it: (6). The default: both sides wait for each other.
struct Ahead {
  Bytes eager;             // E
  Bytes buffered;          // B
  double copy_rate = 0.0;  // v [B/s]; 0: copies take no time
  [[nodiscard]] Duration copy(Bytes bytes) const;
};

// One transport. The default costs nothing.
struct TransportCost {
  Duration per_message;           // o
  Bytes chunk;                    // c
  std::int64_t copies = 0;        // k: through host memory, at both ends together
  std::optional<Sockets> sockets; // none: no core touches the data
  Congestion congestion{};        // on links that several sources share
  Ahead ahead{};

  // Seconds that (2) adds to S / R, the links' latency apart. `copy_rate`: h.
  [[nodiscard]] double message_s(double bytes, double copy_rate) const;
  // (3) [B]. `latency_s` of the links.
  [[nodiscard]] double half_size(double latency_s, double rate, double copy_rate) const;
};

struct TransportCosts {
  TransportCost network;        // between hosts
  TransportCost shared_memory;  // between GPUs of a host that cannot reach each other
  std::vector<TransportCost> side_networks{};  // between hosts, of further networks beside the first

  // 0: the first.
  [[nodiscard]] const TransportCost& of(std::uint32_t network_index) const {
    return network_index == 0 || network_index > side_networks.size() ? network : side_networks[network_index - 1];
  }
};

}  // namespace stepcast::network
