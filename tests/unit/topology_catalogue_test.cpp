#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include <fmt/format.h>

#include "sim/base/diagnostic.hpp"
#include "sim/base/text.hpp"
#include "tests/support/source_dir.hpp"
#include "topologies/bisection.hpp"
#include "topologies/catalogue.hpp"
#include "topologies/routing.hpp"

namespace stepcast::topology::test {

namespace {

namespace fs = std::filesystem;

const Catalogue& catalogue() {
  static const Catalogue loaded = load_catalogue(STEPCAST_SOURCE_DIR "/topologies/data");
  return loaded;
}

std::string shared_folder() {
  const char* set = std::getenv("STEPCAST_SHARED");
  return set != nullptr ? set : STEPCAST_SOURCE_DIR "/../shared";
}

// Fields of a CSV line; quotes may hold commas.
std::vector<std::string> fields(const std::string& line) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

template <class T>
void check_sources(const std::map<std::string, T>& entries) {
  for (const auto& [name, entry] : entries) {
    CAPTURE(name);
    const std::vector<FigureText> figures = figures_of(entry);
    CHECK(figures.size() >= 5);
    for (const FigureText& figure : figures) {
      CAPTURE(figure.key);
      CHECK_FALSE(figure.source.empty());
      CHECK_FALSE(figure.value.empty());
    }
  }
}

// Writes files under a fresh folder, and removes it.
struct TemporaryCatalogue {
  fs::path root = fs::temp_directory_path() / fmt::format("stepcast-catalogue-{}", std::rand());
  TemporaryCatalogue() { fs::copy(STEPCAST_SOURCE_DIR "/topologies/data", root, fs::copy_options::recursive); }
  ~TemporaryCatalogue() { fs::remove_all(root); }
  TemporaryCatalogue(const TemporaryCatalogue&) = delete;
  TemporaryCatalogue& operator=(const TemporaryCatalogue&) = delete;
  void replace(const std::string& file, const std::string& from, const std::string& to) const {
    std::ifstream in{root / file};
    std::string text{std::istreambuf_iterator<char>{in}, {}};
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    std::ofstream{root / file} << text.replace(at, from.size(), to);
  }
  [[nodiscard]] std::string error() const {
    try {
      load_catalogue(root.string());
    } catch (const UserError& refused) {
      return refused.what();
    }
    return "accepted";
  }
};

template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_SUITE_BEGIN("unit");

TEST_CASE("topology: every catalogue figure has a value and a source") {
  check_sources(catalogue().gpus);
  check_sources(catalogue().nics);
  check_sources(catalogue().nodes);
  CHECK(catalogue().gpus.size() >= 30);
}

// Dense rates: fp8 is at most twice bf16 (sparse figures are twice the dense ones), tf32 at most half.
TEST_CASE("topology: rates are dense") {
  for (const auto& [name, gpu] : catalogue().gpus) {
    CAPTURE(name);
    if (gpu.bf16 && gpu.fp8) CHECK(gpu.fp8->value / gpu.bf16->value <= 2.05);
    if (gpu.bf16 && gpu.tf32) CHECK(gpu.tf32->value / gpu.bf16->value <= 0.51);
    if (gpu.bf16 && gpu.fp16) CHECK(gpu.fp16->value / gpu.bf16->value == doctest::Approx(1.0));
    if (gpu.bf16 && gpu.matmul_bf16) CHECK(gpu.matmul_bf16->value < gpu.bf16->value);
    CHECK(gpu.device_memory().value <= gpu.memory.value);
    CHECK(gpu.device_memory().value.si() > 0.9 * gpu.memory.value.si());
  }
  CHECK(find_gpu(catalogue(), "h100-sxm").bf16->value.si() == doctest::Approx(989e12));
}

TEST_CASE("topology: names and aliases find hardware, anything else is refused with the nearest") {
  CHECK(find_gpu(catalogue(), "A100-SXM").name == "a100-sxm-80");
  CHECK(find_gpu(catalogue(), "H100-SXM-96GB-HBM2e (500 W)").name == "h100-sxm-96-500w");
  CHECK(find_nic(catalogue(), "ndr").name == "ib-ndr-400");
  CHECK(find_node(catalogue(), "p4d.24xlarge").name == "p4d");
  const std::string text = error_of([] { find_gpu(catalogue(), "h100-smx", "cluster.gpu"); });
  CHECK(text.find("cluster.gpu: unknown GPU") != std::string::npos);
  CHECK(text.find("did you mean 'h100-sxm'?") != std::string::npos);
}

TEST_CASE("topology: every node's fabric has a path between its GPUs and to a second node") {
  for (const auto& [name, node] : catalogue().nodes) {
    CAPTURE(name);
    for (const char* preset : {"clos", "rail-clos"}) {
      scenario::Cluster cluster;
      cluster.nodes = 2;
      cluster.node = name;
      cluster.nvlink_domain = 1;
      cluster.fabric = scenario::Fabric{.preset = preset};
      const Fabric fabric = build_fabric(resolve_cluster(catalogue(), cluster), cluster);
      const Router router{fabric};
      for (std::uint32_t g = 1; g < fabric.gpus_per_node; ++g) CHECK_FALSE(router.path(0, g).shares.empty());
      const Path away = router.path(0, fabric.gpus_per_node);
      CHECK(away.kind == PathKind::kNetwork);
      for (std::uint32_t j = 0; j < router.nics_per_node(); ++j) CHECK_FALSE(router.path_through_nic(0, fabric.gpus_per_node, j).shares.empty());
    }
  }
}

TEST_CASE("topology: a catalogue with mistakes is refused file by file") {
  const TemporaryCatalogue files;
  files.replace("nodes/dgx-h100.yaml", "gpu: h100-sxm", "gpu: h100-smx");
  CHECK(files.error().find("no GPU 'h100-smx'") != std::string::npos);
  files.replace("nics/eth-10.yaml", "10 Gb/s, ", "10, ");
  CHECK(files.error().find("eth-10.yaml") != std::string::npos);
  CHECK(files.error().find("no unit") != std::string::npos);
  const TemporaryCatalogue twice;
  twice.replace("gpus/l4.yaml", "\"L4\"", "\"L40S\"");
  CHECK(twice.error().find("'L40S' already means") != std::string::npos);
  CHECK(error_of([] { load_catalogue("/nonexistent"); }).find("no hardware catalogue in /nonexistent/gpus") != std::string::npos);
}

// The figures that the shared table gives for a GPU are the catalogue's, but for those of variants.
TEST_CASE("topology: the catalogue agrees with the shared hardware table") {
  std::ifstream table{shared_folder() + "/hardware.csv"};
  if (!table) {
    MESSAGE("skipped: no shared/hardware.csv");
    return;
  }
  const std::map<std::string, std::pair<const char*, double>> metrics{
      {"fp32_tflops", {"fp32", 1e12}}, {"tf32_tflops", {"tf32", 1e12}}, {"fp16_tflops", {"fp16", 1e12}}, {"bf16_tflops", {"bf16", 1e12}},
      {"fp8_tflops", {"fp8", 1e12}}, {"fp4_tflops", {"fp4", 1e12}}, {"int8_tops", {"int8", 1e12}}, {"mem_gb", {"memory", 1073741824.0}},
      {"hbm_gbps", {"memory_bandwidth", 1e9}}, {"l2_mb", {"l2", 1048576.0}}, {"sm", {"sm_count", 1}}, {"cu", {"sm_count", 1}},
      {"boost_mhz", {"boost_clock", 1e6}}, {"tensor_peak_mhz", {"tensor_clock", 1e6}}, {"power_w", {"power_limit", 1}},
      {"scaleup_unidir_gbps", {"scale_up", 1e9}}, {"mamf_bf16_tflops", {"matmul_bf16", 1e12}}};
  const auto value_of = [](const Gpu& gpu, const std::string& key) -> std::optional<double> {
    const auto si = [](const auto& figure) -> std::optional<double> { return figure ? std::optional{figure->value.si()} : std::nullopt; };
    if (key == "fp32") return si(gpu.fp32);
    if (key == "tf32") return si(gpu.tf32);
    if (key == "fp16") return si(gpu.fp16);
    if (key == "bf16") return si(gpu.bf16);
    if (key == "fp8") return si(gpu.fp8);
    if (key == "fp4") return si(gpu.fp4);
    if (key == "int8") return si(gpu.int8);
    if (key == "memory") return gpu.memory.value.si();
    if (key == "memory_bandwidth") return gpu.memory_bandwidth.value.si();
    if (key == "l2") return si(gpu.l2);
    if (key == "sm_count") return static_cast<double>(gpu.sm_count.value);
    if (key == "boost_clock") return si(gpu.boost_clock);
    if (key == "tensor_clock") return si(gpu.tensor_clock);
    if (key == "power_limit") return gpu.power_limit.value.si();
    if (key == "scale_up") return si(gpu.scale_up);
    return si(gpu.matmul_bf16);
  };
  const std::map<std::string, const char*> entry_of{
      {"V100-SXM2-32GB", "v100-sxm2-32"}, {"A100-SXM4-40GB", "a100-sxm-40"}, {"A100-SXM4-80GB", "a100-sxm-80"}, {"A100-PCIe-80GB", "a100-pcie-80"},
      {"H100-SXM5-80GB", "h100-sxm"}, {"H100-SXM5-96GB-HBM2e-500W (Meta Grand Teton)", "h100-sxm-96-500w"}, {"H100-PCIe-80GB", "h100-pcie"},
      {"H100-NVL-94GB", "h100-nvl"}, {"H200-SXM-141GB", "h200-sxm"}, {"GH200-SXM", "gh200-96"}, {"H20", "h20"}, {"B200-SXM", "b200-sxm"},
      {"GB200", "gb200"}, {"B300-SXM", "b300-sxm"}, {"GB300", "gb300"}, {"L4", "l4"}, {"L40S", "l40s"}, {"RTX-4090", "rtx-4090"},
      {"RTX-PRO-6000-Blackwell-Server", "rtx-pro-6000"}, {"A10", "a10"}, {"A30", "a30"}, {"A40", "a40"}, {"T4", "t4"}, {"MI250X", "mi250x"},
      {"MI300X", "mi300x"}, {"MI325X", "mi325x"}, {"MI355X", "mi355x"}, {"Gaudi2", "gaudi2"}, {"Gaudi3", "gaudi3"}};
  int compared = 0;
  for (std::string line; std::getline(table, line);) {
    const std::vector<std::string> row = fields(line);
    if (row.size() < 5 || row[0] != "gpu") continue;
    CAPTURE(line);
    REQUIRE(entry_of.contains(row[1]));
    const auto metric = metrics.find(row[2]);
    const std::optional<double> number = parse_number(row[3]);
    if (metric == metrics.end() || !number) continue;
    const std::optional<double> ours = value_of(catalogue().gpus.at(entry_of.at(row[1])), metric->second.first);
    REQUIRE(ours.has_value());
    CHECK(*ours == doctest::Approx(*number * metric->second.second).epsilon(1e-6));
    ++compared;
  }
  CHECK(compared > 200);
}

// Spellings of the measured tables.
TEST_CASE("topology: the shared tables' spellings of GPUs are known") {
  const std::string folder = shared_folder();
  if (!fs::exists(folder + "/truth") || !fs::exists(folder + "/kernels/gemm.csv")) {
    MESSAGE("skipped: no shared/truth");
    return;
  }
  std::vector<std::string> files{folder + "/kernels/gemm.csv"};
  for (const fs::directory_entry& file : fs::directory_iterator{folder + "/truth"})
    if (file.path().extension() == ".csv" && file.path().stem() != "korthikanti_layer_times") files.push_back(file.path().string());
  std::map<std::string, std::string> spellings;  // and a file that has it
  for (const std::string& name : files) {
    std::ifstream table{name};
    std::string line;
    std::getline(table, line);
    const std::vector<std::string> header = fields(line);
    const auto column = static_cast<std::size_t>(std::find(header.begin(), header.end(), "gpu") - header.begin());
    if (column == header.size()) continue;
    while (std::getline(table, line)) {
      const std::vector<std::string> row = fields(line);
      // Not a part one can name: a class of GPUs.
      if (row.size() <= column || row[column].empty() || row[column] == "Ampere (A100-class)") continue;
      spellings.emplace(row[column], name);
    }
  }
  CHECK(spellings.size() > 20);
  const Catalogue& loaded = catalogue();
  for (const auto& [spelling, file] : spellings) {
    CAPTURE(file);
    CHECK_NOTHROW(find_gpu(loaded, spelling));
  }
}

// A rack is 18 trays of 4 GPUs on one NVSwitch; between two racks every GPU has its own NIC on its tray's rail.
TEST_CASE("catalogue: an NVLink domain of a rack is 18 nodes") {
  const Catalogue catalogue = load_catalogue(STEPCAST_SOURCE_DIR "/topologies/data");
  scenario::Cluster cluster;
  cluster.nodes = 36;
  cluster.node = "gb200-nvl72";
  cluster.fabric = scenario::Fabric{.preset = "rail-clos"};
  const Fabric fabric = build_fabric(resolve_cluster(catalogue, cluster), cluster);
  CHECK(fabric.gpus.size() == 144);
  const Router router{fabric};
  CHECK(router.path(0, 71).kind == PathKind::kNvlink);
  CHECK(router.path(0, 71).switch_hops == 1);
  CHECK(router.path(0, 72).kind == PathKind::kNetwork);
  CHECK(router.path(3, 4).kind == PathKind::kNvlink);  // two trays of the first rack
  CHECK(fabric.nics_per_node() == 4);
  CHECK(fabric.host.memory_of_gpu[0] != fabric.host.memory_of_gpu[3]);  // a Grace for each pair of GPUs
  CHECK(bisection(fabric)->fraction() == doctest::Approx(1.0));
}

TEST_SUITE_END();

}  // namespace stepcast::topology::test
