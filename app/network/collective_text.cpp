#include "app/network/collective_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/forecast/forecast_json.hpp"

namespace stepcast::app {
namespace {

using plan::CollectiveKind;

constexpr std::int32_t kMostRanksListed = 128;

std::string time_cell(double us) {
  if (us >= 10000.0) return fmt::format("{:7.0f}", us);
  return us >= 100.0 ? fmt::format("{:7.1f}", us) : fmt::format("{:7.2f}", us);
}

bool reduces(CollectiveKind kind) { return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduceScatter; }

std::string why(const CollectiveTime& row) {
  return fmt::format("{} {}{}", collective::name_of(row.algorithm), collective::name_of(row.protocol), row.host_bound ? ", host-bound" : "");
}

std::string row_text(const CollectiveTable& table, const CollectiveTime& row, bool explain) {
  const std::string block = fmt::format("  {}  {:6.2f}  {:6.2f}  {:>5}", time_cell(row.time.seconds() * 1e6), row.algbw * 1e-9, row.busbw * 1e-9, "N/A");
  return fmt::format("{:12}  {:12}  {:>8}  {:>6}  {:>6}", row.size.count(), row.count, table.dtype,
                     reduces(table.job.kind) ? "sum" : "none", table.job.kind == CollectiveKind::kBroadcast ? "0" : "-1") +
         block + block + (explain ? "  # " + why(row) : "") + "\n";
}

}  // namespace

const char* nccl_tests_name(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce: return "all_reduce";
    case CollectiveKind::kAllGather: return "all_gather";
    case CollectiveKind::kReduceScatter: return "reduce_scatter";
    case CollectiveKind::kBroadcast: return "broadcast";
    case CollectiveKind::kAllToAll: return "alltoall";
    case CollectiveKind::kSendReceive: return "sendrecv";
  }
  return "";
}

std::string to_text(const CollectiveTable& table, bool explain) {
  const CollectiveJob& job = table.job;
  const auto size_at = [&](bool last) { return table.rows.empty() ? 0 : (last ? table.rows.back() : table.rows.front()).size.count(); };
  std::string text = fmt::format(
      "# {}\n# Collective test starting: {}_perf (simulated)\n"
      "# nThread 1 nGpus {} minBytes {} maxBytes {} step: {} warmup iters: 1 iters: 4 agg iters: 1 validation: 0 graph: 0\n#\n# Using devices\n",
      table.cluster, nccl_tests_name(job.kind), job.gpus_per_process, size_at(false), size_at(true), table.step);
  if (job.volumes) text += fmt::format("# unequal parts, by {}: {}; size is what a rank holds on average\n#\n", plan::name_of(job.volumes->form), job.volumes->name);
  for (std::int32_t r = 0; r < std::min(job.ranks, kMostRanksListed); ++r) {
    const auto local = static_cast<std::int32_t>(table.gpus_per_node);
    text += fmt::format("#  Rank {:2} Group  0 Pid {:6} on {:>10} device {:2} [0000:00:{:02x}] {}\n", r, r / job.gpus_per_process,
                        fmt::format("node{}", r / local), r % local, r % local, table.gpu);
  }
  if (job.ranks > kMostRanksListed) text += fmt::format("#  ... to Rank {}\n", job.ranks - 1);
  text +=
      "#\n#                                                              out-of-place                       in-place          \n"
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       \n";
  double sum = 0.0;
  for (const CollectiveTime& row : table.rows) {
    text += row_text(table, row, explain);
    sum += row.busbw * 1e-9;
  }
  return text + fmt::format("# Out of bounds values : 0 OK\n# Avg bus bandwidth    : {:.6g}\n#\n",
                            table.rows.empty() ? 0.0 : sum / static_cast<double>(table.rows.size()));
}

std::string to_json(const CollectiveTable& table) {
  nlohmann::ordered_json json{{"cluster", table.cluster}, {"collective", nccl_tests_name(table.job.kind)}, {"ranks", table.job.ranks},
                              {"type", table.dtype}, {"gpus_per_process", table.job.gpus_per_process}};
  json["volumes"] = table.job.volumes ? nlohmann::ordered_json(table.job.volumes->name) : nlohmann::ordered_json(nullptr);
  json["rows"] = nlohmann::ordered_json::array();
  for (const CollectiveTime& row : table.rows) {
    json["rows"].push_back({{"size_bytes", row.size.count()}, {"count", row.count}, {"time_s", exact_seconds(row.time)},
                            {"algbw_bytes_per_s", row.algbw}, {"busbw_bytes_per_s", row.busbw},
                            {"algorithm", collective::name_of(row.algorithm)}, {"protocol", collective::name_of(row.protocol)},
                            {"host_bound", row.host_bound}});
  }
  return json_text(json);
}

}  // namespace stepcast::app
