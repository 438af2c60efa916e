#include "models/network/transport/nscc.hpp"

#include <algorithm>

namespace stepcast::network {
namespace {

// The network for which the specification gives its constants.
constexpr double kReferenceRate = 12.5e9;  // [B/s] 100 Gb/s
constexpr double kReferenceRoundTrip_s = 12e-6;

}  // namespace

NsccScale nscc_scale(double rate, double base_s, const PacketFormat& format, const NsccParameters& parameters) {
  NsccScale scale{.rate = rate, .base_s = base_s, .target_s = parameters.target_of_base * base_s, .packet_bytes = format.packet_bytes(),
                  .least_bytes = format.packet_bytes()};
  scale.a = rate * base_s / (kReferenceRate * kReferenceRoundTrip_s);
  const double b = scale.target_s / kReferenceRoundTrip_s;
  scale.alpha = 4 * format.payload_bytes * scale.a * b / scale.target_s;
  scale.fi = 5 * format.payload_bytes * scale.a;
  scale.eta = 0.15 * format.payload_bytes * scale.a;
  return scale;
}

Nscc::Nscc(const NsccScale& scale, const NsccParameters& parameters) : scale_{scale}, parameters_{parameters}, base_s_{scale.base_s} {
  window_ = largest();
}

void Nscc::on_ack(double now_s, double round_trip_s, bool marked, double bytes, double in_flight_bytes) {
  achieved_ += bytes;
  since_adjusted_ += bytes;
  ignored_ += bytes;
  base_s_ = std::min(base_s_, round_trip_s);
  const double delay_s = round_trip_s - base_s_;
  average(delay_s, marked);
  if (quick_adapt(now_s, false, marked, delay_s, in_flight_bytes)) return;
  const bool late = delay_s >= scale_.target_s;
  if (!marked && late) pending_ += scale_.fi * bytes;
  if (!marked && !late) increase(bytes, delay_s);
  if (marked && late) decrease(now_s);
  bound();
  if (since_adjusted_ > 8 * scale_.packet_bytes || now_s - adjusted_s_ > scale_.base_s) adjust(now_s);
  bound();
}

void Nscc::on_trim(double now_s, double round_trip_s, double bytes, double in_flight_bytes) {
  ignored_ += bytes;
  base_s_ = std::min(base_s_, round_trip_s);
  average(scale_.base_s, true);
  trimmed_ = true;
  if (!quick_adapt(now_s, true, true, 0.0, in_flight_bytes)) window_ -= bytes;
  bound();
}

void Nscc::bound() { window_ = std::clamp(window_, scale_.least_bytes, std::max(scale_.least_bytes, largest())); }

void Nscc::average(double delay_s, bool marked) {
  const double sample_s = !marked && delay_s > scale_.target_s ? base_s_ / 4 : delay_s;
  average_s_ += parameters_.delay_gain * (sample_s - average_s_);
}

// True when the signal has no other effect.
bool Nscc::quick_adapt(double now_s, bool trimmed, bool marked, double delay_s, double in_flight_bytes) {
  bool acted = ignored_ < to_ignore_ && marked;
  if (!acted && now_s > quick_end_s_) {
    const bool congested = trimmed_ || trimmed || delay_s > 4 * scale_.target_s;
    if (quick_end_s_ > 0.0 && congested && achieved_ < parameters_.quick_fraction * largest()) {
      window_ = std::max(achieved_, scale_.least_bytes);
      to_ignore_ = in_flight_bytes;
      ignored_ = 0.0;
      trimmed_ = false;
      acted = true;
    }
    achieved_ = 0.0;
    quick_end_s_ = now_s + base_s_ + scale_.target_s;
  }
  if (acted) {
    pending_ = 0.0;
    since_adjusted_ = 0.0;
  }
  return acted;
}

void Nscc::increase(double bytes, double delay_s) {
  const bool calm = delay_s < parameters_.fast_delay_s;
  calm_ = calm ? calm_ + bytes : 0.0;
  fast_ = calm && (fast_ || calm_ > window_);
  if (fast_) {
    window_ += bytes * scale_.a / 4;
  } else {
    pending_ += scale_.alpha * bytes * (scale_.target_s - delay_s);
  }
}

void Nscc::decrease(double now_s) {
  fast_ = false;
  calm_ = 0.0;
  if (average_s_ <= scale_.target_s || now_s - decreased_s_ <= base_s_) return;
  window_ *= std::max(1 - parameters_.gamma * (average_s_ - scale_.target_s) / average_s_, 0.5);
  decreased_s_ = now_s;
}

void Nscc::adjust(double now_s) {
  window_ += pending_ / window_;
  if (now_s - adjusted_s_ >= scale_.base_s) {
    window_ += scale_.eta;
    adjusted_s_ = now_s;
  }
  pending_ = 0.0;
  since_adjusted_ = 0.0;
}

}  // namespace stepcast::network
