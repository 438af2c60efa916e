#include "app/commands/network_collective.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "app/cli/size_list.hpp"
#include "app/network/collective_machine.hpp"
#include "app/network/collective_text.hpp"
#include "app/scenario/cluster_file.hpp"
#include "app/scenario/volume_file.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/text.hpp"

namespace stepcast::app {
namespace {

namespace po = boost::program_options;
using plan::CollectiveKind;

// Without FILE: nccl-tests' most quoted machine. The table's first line names it.
constexpr const char* kUsualCluster = "name: no FILE given\ncluster: {node: dgx-h100, fabric: {preset: rail-clos}}\n";

constexpr std::array kKinds{CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
                            CollectiveKind::kBroadcast, CollectiveKind::kAllToAll, CollectiveKind::kSendReceive};

// The value whose name the option's text is; the error names the nearest.
template <class T>
T word(const std::string& option, const std::string& text, const std::map<std::string, T>& values) {
  if (const auto it = values.find(text); it != values.end()) return it->second;
  std::vector<std::string> names;
  for (const auto& [name, value] : values) names.push_back(name);
  const auto near = nearest_word(text, names);
  throw UserError(Diagnostic{.path = option, .problem = "unknown '" + text + "'", .expected = one_of(names),
                             .hint = near ? "did you mean '" + *near + "'?" : ""});
}

std::map<std::string, CollectiveKind> kinds() {
  std::map<std::string, CollectiveKind> kinds;
  for (const CollectiveKind kind : kKinds) kinds.emplace(nccl_tests_name(kind), kind);
  return kinds;
}

std::vector<std::string> names_of(const std::map<std::string, CollectiveKind>& kinds) {
  std::vector<std::string> names;
  for (const auto& [name, kind] : kinds) names.push_back(name);
  return names;
}

void choose(const Invocation& invocation, scenario::Communication& communication) {
  if (const auto algorithm = invocation.text("algorithm")) {
    std::map<std::string, scenario::CollectiveAlgorithm> words;
    for (const auto& [name, value] : enum_words(scenario::CollectiveAlgorithm{})) words.emplace(name, value);
    communication.algorithm = word("--algorithm", *algorithm, words);
  }
  if (const auto protocol = invocation.text("protocol")) {
    std::map<std::string, scenario::CollectiveProtocol> words;
    for (const auto& [name, value] : enum_words(scenario::CollectiveProtocol{})) words.emplace(name, value);
    communication.protocol = word("--protocol", *protocol, words);
  }
}

std::int64_t within(const Invocation& invocation, const std::string& option, std::int64_t usual, std::int64_t least, std::int64_t most) {
  const std::int64_t value = invocation.integer(option).value_or(usual);
  if (value < least || value > most) {
    throw UserError(Diagnostic{.path = "--" + option, .problem = "out of range", .expected = fmt::format("{} to {}", least, most),
                               .got = std::to_string(value)});
  }
  return value;
}

// A forced algorithm that the collective does not have on this machine is a wrong question, not a wish to ignore.
void check_forced(const CollectiveMachine& cluster, const CollectiveJob& job) {
  std::optional<collective::Algorithm> forced = cluster.machine().forced.algorithm;
  if (!forced) return;
  forced = counterpart(*forced, job.kind);
  const collective::Layout layout = cluster.layout(job.ranks);
  if (can_make(*forced, job.kind, layout, cluster.machine().collectives)) return;
  std::vector<std::string> able;
  for (const collective::Algorithm a : candidates(job.kind, layout, cluster.machine().collectives)) able.emplace_back(name_of(a));
  throw UserError(Diagnostic{.path = "--algorithm",
                             .problem = fmt::format("{} cannot make {} on {} GPUs of {} node(s) here", name_of(*forced),
                                                    nccl_tests_name(job.kind), layout.ranks, layout.hosts),
                             .expected = one_of(able)});
}

std::optional<plan::VolumeTable> pick_volumes(const Invocation& invocation, const CollectiveJob& job) {
  const auto file = invocation.text("volumes");
  const auto skew = invocation.text("zipf");
  if (!file && !skew) return std::nullopt;
  const char* const option = file ? "--volumes" : "--zipf";
  if (job.kind != CollectiveKind::kAllToAll) {
    throw UserError(Diagnostic{.path = option, .problem = "unequal parts are of all-to-all", .expected = "--collective alltoall", .got = nccl_tests_name(job.kind)});
  }
  if (file && skew) throw UserError(Diagnostic{.path = "--zipf", .problem = "a second description of volumes beside --volumes", .expected = "one of both"});
  const auto ranks = static_cast<std::size_t>(job.ranks);
  if (file) return read_volumes(*file, ranks);
  const auto exponent = parse_number(*skew);
  if (!exponent || !(*exponent >= 0.0 && *exponent <= 10.0)) {
    throw UserError(Diagnostic{.path = "--zipf", .problem = "not an exponent", .expected = "a number from 0 to 10", .got = *skew});
  }
  return plan::VolumeTable{.name = fmt::format("zipf {}", *exponent), .form = plan::VolumeForm::kReceivers, .values = plan::zipf(ranks, *exponent)};
}

// Of a matrix of bytes: what a rank sends on average.
std::optional<Bytes> own_size(const std::optional<plan::VolumeTable>& volumes, std::int32_t ranks) {
  if (!volumes || volumes->form != plan::VolumeForm::kPairs) return std::nullopt;
  const double sum = std::accumulate(volumes->values.begin(), volumes->values.end(), 0.0);
  return Bytes{static_cast<std::int64_t>(std::ceil(sum / static_cast<double>(ranks)))};
}

}  // namespace

void add_collective_options(OptionList& options) {
  options.add_options()
      ("collective", po::value<std::string>()->value_name("NAME"), ("time a collective alone, in nccl-tests' form: " + one_of(names_of(kinds()))).c_str())
      ("sizes", po::value<std::string>()->value_name("LIST"), "8..8G (default), or 1M,4M,1G; K, M, G are powers of 1024")
      ("step-factor", po::value<std::int64_t>()->value_name("N"), "factor between sizes of a range (default 2)")
      ("ranks", po::value<std::int64_t>()->value_name("N"), "the cluster's first N GPUs (default: all)")
      ("gpus-per-process", po::value<std::int64_t>()->value_name("N"), "GPUs that one process issues to, nccl-tests' -g (default 1)")
      ("algorithm", po::value<std::string>()->value_name("NAME"), "auto, ring, tree, nvls, nvls-tree, collnet, pat, pairwise, pxn or hierarchical")
      ("protocol", po::value<std::string>()->value_name("NAME"), "auto, ll, ll128 or simple")
      ("volumes", po::value<std::string>()->value_name("FILE"), "alltoall of unequal parts: a line of numbers by receiver, a column by sender, or a matrix of bytes")
      ("zipf", po::value<std::string>()->value_name("S"), "alltoall whose receiver k gets a share proportional to (k+1)^-S")
      ("profile", po::value<std::string>()->value_name("FILE"), "calibration profile instead of the GPU's own, as `stepcast calibrate` writes it")
      ("axis", po::value<std::string>()->value_name("NAME"), "as whose traffic it travels where there are several networks: tp, cp, ep, dp (default) or pp")
      ("explain", "end rows with the algorithm and protocol chosen");
}

Status run_collective(const Invocation& invocation, Session& session) {
  CollectiveJob job;
  job.kind = word("--collective", *invocation.text("collective"), kinds());
  const std::int64_t factor = within(invocation, "step-factor", 2, 2, 1 << 20);
  if (invocation.operands.size() > 1) {
    throw UserError(Diagnostic{.path = "stepcast network", .problem = "several clusters", .expected = "one FILE", .got = std::to_string(invocation.operands.size())});
  }
  scenario::Loaded loaded = invocation.operands.empty() ? cluster_of_text(kUsualCluster, "no FILE", invocation.list("set"))
                                                        : load_cluster(invocation.operands[0], invocation.list("set"));
  if (const auto axis = invocation.text("axis")) {
    const std::map<std::string, plan::Purpose> axes{{"tp", plan::Purpose::kTensor}, {"cp", plan::Purpose::kContext}, {"ep", plan::Purpose::kExpert},
                                                    {"dp", plan::Purpose::kData}, {"pp", plan::Purpose::kPipeline}};
    job.purpose = word("--axis", *axis, axes);
  }
  choose(invocation, loaded.scenario.communication);
  if (const auto profile = invocation.text("profile")) loaded.scenario.profile = *profile;
  const CollectiveMachine cluster{load_shelf(session.data), loaded};
  const auto gpus = static_cast<std::int64_t>(cluster.machine().fabric.gpus.size());
  if (gpus < 2) throw UserError(loaded.where.error("cluster", "a collective needs two GPUs", "a cluster of two GPUs or more", std::to_string(gpus)));
  job.ranks = static_cast<std::int32_t>(within(invocation, "ranks", gpus, 2, gpus));
  job.gpus_per_process = static_cast<std::int32_t>(within(invocation, "gpus-per-process", 1, 1, cluster.machine().fabric.gpus_per_node));
  job.launch = cluster.launch();
  job.issue = cluster.issue();
  check_forced(cluster, job);
  job.volumes = pick_volumes(invocation, job);
  const std::optional<Bytes> own = invocation.text("sizes") ? std::nullopt : own_size(job.volumes, job.ranks);
  const std::vector<Bytes> sizes = own ? std::vector<Bytes>{*own} : read_sizes(invocation.text("sizes").value_or("8..8G"), factor);
  const std::vector<CollectiveTime> rows = time_collective(job, sizes, cluster.machine());
  const CollectiveTable table{.cluster = loaded.scenario.name + ", " + cluster.machine().fabric.name, .gpu = cluster.gpu_title(),
                              .step = fmt::format("{}(factor)", factor), .gpus_per_node = cluster.machine().fabric.gpus_per_node,
                              .job = job, .rows = rows};
  write_json(invocation, to_json(table));
  print_text(invocation, to_text(table, invocation.has("explain")));
  return Status::kDone;
}

}  // namespace stepcast::app
