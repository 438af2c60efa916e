// models/network/transport/nscc.hpp — network-signalled congestion control: the window of one UEC sender.
//
// Model    W bytes may be in flight. An acknowledgement of A bytes, marked (ECN) or not, with queueing delay
//          d = round trip - base:
//            not marked, d < target   W += alpha A (target - d) / W    proportional increase; if d < 1 us for a
//                                     whole window, W += A a / 4 instead (fast increase)
//            not marked, d >= target  W += fi A / W                    fair increase
//            marked, d >= target      W *= max(1 - gamma (D - target) / D, 1/2), at most once a base round trip,
//                                     if D > target
//            marked, d < target       nothing (the path is avoided)
//          D averages d (a late packet that is not marked counts as base / 4, a trimmed one as base). Increases take
//          effect every 8 packets or base round trip, and eta is added once a base round trip. A trimmed packet takes
//          its size off W. Quick adapt: after trims or d > 4 target, looked at once every base + target, W is set to
//          the bytes that arrived in that time if they are fewer than largest / 8; what was in flight is then ignored.
//          One packet (quantum) <= W <= 1.5 base R, where W starts.
//          alpha = 4 p a b / target,  fi = 5 p a,  eta = 0.15 p a,  a = R base / (12.5 GB/s 12 us),  b = target / 12 us,
//          target = 0.75 base
// Symbols  p [B] payload of a packet, R [B/s] rate of the host's link, base [s] round trip of the longest route,
//          lowered to the shortest that the sender sees; W, A, fi, eta [B]; alpha [B/s]; a, b, gamma [1]
// Source   NSCC of the UE specification 1.0 as the public simulator uet-htsim has it, with its default figures: the
//          recordings were made with it (../shared/packet_truth/README.md)
// Valid    trimming fabrics
// Ignores  receiver credit, window penalties of the receiver, loss recovery without trimming
// Tests    unit/uec_transport_test, diff/packet_replay_test
#pragma once

#include "models/network/transport/traffic.hpp"

namespace stepcast::network {

struct NsccParameters {
  double gamma = 0.8;
  double delay_gain = 0.0125;     // of the moving average D
  double target_of_base = 0.75;
  double window_of_base = 1.5;
  double quick_fraction = 0.125;  // of the largest window
  double fast_delay_s = 1e-6;
};

// What all senders of a run share.
struct NsccScale {
  double rate = 0.0;  // R [B/s]
  double base_s = 0.0;
  double target_s = 0.0;
  double packet_bytes = 0.0;
  double least_bytes = 0.0;  // the window never falls below one quantum
  double a = 0.0;
  double alpha = 0.0;
  double fi = 0.0;
  double eta = 0.0;
};

// `base_s`: the unloaded round trip of the longest route.
NsccScale nscc_scale(double rate, double base_s, const PacketFormat& format, const NsccParameters& parameters);

class Nscc {
 public:
  Nscc(const NsccScale& scale, const NsccParameters& parameters);

  [[nodiscard]] double window_bytes() const { return window_; }
  // `in_flight_bytes`: without those that the signal tells of (acknowledged), with them (trimmed).
  void on_ack(double now_s, double round_trip_s, bool marked, double bytes, double in_flight_bytes);
  void on_trim(double now_s, double round_trip_s, double bytes, double in_flight_bytes);

 private:
  [[nodiscard]] double largest() const { return parameters_.window_of_base * base_s_ * scale_.rate; }
  void bound();
  void average(double delay_s, bool marked);
  bool quick_adapt(double now_s, bool trimmed, bool marked, double delay_s, double in_flight_bytes);
  void increase(double bytes, double delay_s);
  void decrease(double now_s);
  void adjust(double now_s);

  NsccScale scale_;
  NsccParameters parameters_;
  double base_s_;
  double window_ = 0.0;
  double average_s_ = 0.0;
  double pending_ = 0.0;         // [B^2] increases that await adjust()
  double since_adjusted_ = 0.0;  // [B]
  double adjusted_s_ = 0.0;
  double decreased_s_ = 0.0;
  double calm_ = 0.0;            // [B] acknowledged in a row without delay
  bool fast_ = false;
  double achieved_ = 0.0;        // [B] since quick adapt looked
  double quick_end_s_ = 0.0;     // 0: it has not looked yet
  double to_ignore_ = 0.0;       // [B]
  double ignored_ = 0.0;         // [B]
  bool trimmed_ = false;
};

}  // namespace stepcast::network
