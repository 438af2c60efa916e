#include "app/importers/smi_topology.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "sim/base/diagnostic.hpp"
#include "sim/base/text.hpp"

namespace stepcast::app {
namespace {

struct Word {
  std::string text;
  int column = 1;
};

std::vector<Word> words_of(std::string_view line) {
  std::vector<Word> words;
  for (std::size_t i = 0; i < line.size();) {
    if (line[i] == ' ' || line[i] == '\t' || line[i] == '\r') {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < line.size() && line[end] != ' ' && line[end] != '\t' && line[end] != '\r') ++end;
    words.push_back({std::string{line.substr(i, end - i)}, static_cast<int>(i) + 1});
    i = end;
  }
  return words;
}

// Without the colours of a terminal.
std::string plain(std::string_view line) {
  std::string text;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\x1b') {
      text += line[i];
      continue;
    }
    while (i < line.size() && line[i] != 'm') ++i;
  }
  return text;
}

bool is_number(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }); }
bool is_gpu(const std::string& name) { return name.starts_with("GPU") && is_number(std::string_view{name}.substr(3)); }

// From near to far. NV# is not in it: it says nothing of PCIe.
constexpr std::array<std::string_view, 6> kDistances{"X", "PIX", "PXB", "PHB", "NODE", "SYS"};
std::optional<std::size_t> distance_of(const std::string& word) {
  const auto found = std::find(kDistances.begin(), kDistances.end(), word);
  return found == kDistances.end() ? std::nullopt : std::optional{static_cast<std::size_t>(found - kDistances.begin())};
}
std::optional<std::uint32_t> links_of(const std::string& word) {
  if (!word.starts_with("NV") || !is_number(std::string_view{word}.substr(2)) || word.size() > 5) return std::nullopt;
  std::uint32_t links = 0;
  std::from_chars(word.data() + 2, word.data() + word.size(), links);
  return links;
}

struct Row {
  std::vector<std::string> cells;
  std::optional<std::uint32_t> numa;
};

class Reader {
 public:
  explicit Reader(const std::string& file) : file_{file} {}

  SmiTopology run(std::string_view text) {
    int number = 0;
    for (const std::string& line : split(text, '\n')) {
      ++number;
      const std::vector<Word> words = words_of(plain(line));
      if (words.empty()) continue;
      if (columns_.empty()) {
        if (words[0].text == "GPU0" && (words.size() == 1 || !distance_of(words[1].text))) heading(words, number);
      } else if (std::find(columns_.begin(), columns_.end(), words[0].text) != columns_.end()) {
        row(words, number);
      }
    }
    if (columns_.empty()) {
      throw UserError{Diagnostic{.where = {file_, 0, 0}, .path = {}, .problem = "no matrix of nvidia-smi topo -m in it", .expected = "a heading that starts with GPU0",
                                 .got = {}, .hint = {}}};
    }
    gather();
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(int line, int column, std::string problem, std::string expected, std::string got = {}) const {
    throw UserError{Diagnostic{.where = {file_, line, column}, .path = {}, .problem = std::move(problem), .expected = std::move(expected), .got = std::move(got), .hint = {}}};
  }

  void heading(const std::vector<Word>& words, int line) {
    for (const Word& word : words) {
      if (word.text == "CPU" || word.text == "NUMA") break;
      if (std::find(columns_.begin(), columns_.end(), word.text) != columns_.end()) refuse(line, word.column, fmt::format("a second column {}", word.text), "each device once");
      columns_.push_back(word.text);
    }
    out_.gpus = static_cast<std::size_t>(std::count_if(columns_.begin(), columns_.end(), is_gpu));
    out_.nics = columns_.size() - out_.gpus;
    for (std::size_t g = 0; g < out_.gpus; ++g)
      if (!is_gpu(columns_[g])) refuse(line, 1, "a GPU's column after another device's", "the GPUs first", columns_[g]);
  }

  void row(const std::vector<Word>& words, int line) {
    if (rows_.contains(words[0].text)) return;  // a second copy of the matrix says the same
    Row row;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (c + 1 >= words.size()) {
        refuse(line, words.back().column, fmt::format("row {} is cut off", words[0].text), fmt::format("{} cells, one for each device of the heading", columns_.size()),
               fmt::format("{}", words.size() - 1));
      }
      const Word& word = words[c + 1];
      if (!distance_of(word.text) && !links_of(word.text)) refuse(line, word.column, "no such connection", "one of X, NV#, PIX, PXB, PHB, NODE, SYS", word.text);
      row.cells.push_back(word.text);
    }
    // CPU affinity (ranges), then NUMA affinity (a number).
    if (words.size() > columns_.size() + 2) {
      const std::string& numa = words[columns_.size() + 2].text;
      if (is_number(numa) && numa.size() < 4) row.numa = static_cast<std::uint32_t>(std::stoul(numa));
    }
    rows_.emplace(words[0].text, std::move(row));
  }

  void gather() {
    NodeFacts& facts = out_.facts;
    facts.tells_nvlink = true;
    out_.rows = rows_.size();
    std::map<std::uint32_t, std::uint32_t> cpu_of;
    for (const auto& [name, row] : rows_)
      if (row.numa) cpu_of.emplace(*row.numa, 0);
    for (auto& [numa, cpu] : cpu_of) cpu = facts.cpus++;
    std::vector<std::string> missing;
    for (std::size_t g = 0; g < out_.gpus; ++g) {
      GpuFact gpu{.name = columns_[g], .model = {}, .cpu = {}, .pcie_switch = {}, .switch_links = 0, .peer_links = {}};
      const auto found = rows_.find(columns_[g]);
      if (found == rows_.end()) {
        missing.push_back(columns_[g]);
      } else if (found->second.numa) {
        gpu.cpu = cpu_of.at(*found->second.numa);
      }
      facts.gpus.push_back(std::move(gpu));
    }
    if (!missing.empty()) facts.remarks.push_back(fmt::format("no row for {}: its connections are those in the other rows", join(missing, ", ")));
    for (std::size_t n = out_.gpus; n < columns_.size(); ++n) facts.nics.push_back({.name = columns_[n], .rate = {}, .transport = {}, .cpu = {}, .pcie_switch = {}});
    nvlinks();
    switches();
  }

  // The cell of a pair, from whichever row is there.
  [[nodiscard]] const std::string* cell(std::size_t a, std::size_t b) const {
    if (const auto row = rows_.find(columns_[a]); row != rows_.end()) return &row->second.cells[b];
    if (const auto row = rows_.find(columns_[b]); row != rows_.end()) return &row->second.cells[a];
    return nullptr;
  }

  void nvlinks() {
    constexpr std::uint32_t kMostLinks = 18;  // of one GPU, up to the B300
    std::map<std::uint32_t, std::size_t> counts;  // 0: a pair without NVLink
    std::size_t known = 0;
    for (std::size_t a = 0; a < out_.gpus; ++a)
      for (std::size_t b = a + 1; b < out_.gpus; ++b)
        if (const std::string* word = cell(a, b)) {
          ++counts[links_of(*word).value_or(0)];
          ++known;
        }
    out_.gpu_links = "PCIe";
    if (known == 0 || (counts.size() == 1 && counts.contains(0))) return;
    const bool alike = counts.size() == 1;
    const std::uint32_t links = counts.rbegin()->first;
    out_.gpu_links = alike ? fmt::format("NV{} between all pairs", links) : "NVLink between some pairs";
    const bool by_switch = alike && links * (out_.gpus - 1) > kMostLinks;
    for (std::size_t a = 0; a < out_.gpus; ++a) {
      if (by_switch) out_.facts.gpus[a].switch_links = links;
      for (std::size_t b = 0; b < out_.gpus && !by_switch; ++b) {
        if (a == b) continue;
        if (const std::string* word = cell(a, b); word != nullptr && links_of(*word))
          out_.facts.gpus[a].peer_links.emplace_back(static_cast<std::uint32_t>(b), *links_of(*word));
      }
    }
  }

  // Devices that PIX or PXB joins hang on one PCIe switch.
  void switches() {
    NodeFacts& facts = out_.facts;
    std::vector<std::size_t> root(columns_.size());
    for (std::size_t i = 0; i < root.size(); ++i) root[i] = i;
    const auto top = [&](std::size_t i) {
      while (root[i] != i) i = root[i];
      return i;
    };
    const auto near = [&](std::size_t a, std::size_t b) {
      const std::string* word = cell(a, b);
      return word != nullptr && (*word == "PIX" || *word == "PXB");
    };
    for (std::size_t a = 0; a < columns_.size(); ++a)
      for (std::size_t b = a + 1; b < columns_.size(); ++b)
        if (near(a, b)) root[std::max(top(a), top(b))] = std::min(top(a), top(b));
    std::map<std::size_t, std::uint32_t> number;
    std::vector<std::size_t> members(columns_.size(), 0);
    for (std::size_t i = 0; i < columns_.size(); ++i) ++members[top(i)];
    const auto switch_of = [&](std::size_t i) -> std::optional<std::uint32_t> {
      if (members[top(i)] < 2) return std::nullopt;
      return number.emplace(top(i), static_cast<std::uint32_t>(number.size())).first->second;
    };
    for (std::size_t g = 0; g < out_.gpus; ++g) facts.gpus[g].pcie_switch = switch_of(g);
    for (std::size_t n = 0; n < facts.nics.size(); ++n) facts.nics[n].pcie_switch = switch_of(out_.gpus + n);
    for (std::size_t g = 0; g < out_.gpus; ++g) {
      std::size_t best = kDistances.size();
      std::size_t nearest = 0;
      for (std::size_t n = 0; n < out_.nics; ++n) {
        const std::string* word = cell(g, out_.gpus + n);
        const std::size_t here = word == nullptr ? kDistances.size() : distance_of(*word).value_or(kDistances.size());
        if (here < best) {
          best = here;
          nearest = n;
        }
      }
      if (out_.nics > 0 && best < kDistances.size()) out_.nearest_nic.push_back(nearest);
    }
    if (out_.nics == out_.gpus && out_.nearest_nic.size() == out_.gpus) {
      std::set<std::size_t> used(out_.nearest_nic.begin(), out_.nearest_nic.end());
      const bool in_order = std::is_sorted(out_.nearest_nic.begin(), out_.nearest_nic.end());
      if (used.size() == out_.gpus && !in_order) facts.remarks.push_back("GPUs and NICs are numbered in another order: NIC i of the node is the one beside GPU i");
    }
  }

  const std::string& file_;
  SmiTopology out_;
  std::vector<std::string> columns_;
  std::map<std::string, Row> rows_;
};

}  // namespace

SmiTopology read_smi_topology(std::string_view text, const std::string& file) { return Reader{file}.run(text); }

}  // namespace stepcast::app
