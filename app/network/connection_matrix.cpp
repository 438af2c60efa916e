#include "app/network/connection_matrix.hpp"

#include <map>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "sim/base/diagnostic.hpp"
#include "sim/base/plain_text.hpp"
#include "sim/base/text.hpp"

namespace stepcast::app {
namespace {

struct Word {
  std::string_view text;
  int column = 0;
};

std::vector<Word> words_of(std::string_view line) {
  std::vector<Word> words;
  for (std::size_t at = line.find_first_not_of(" \t\r"); at != std::string_view::npos; at = line.find_first_not_of(" \t\r", at)) {
    const std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    words.push_back({line.substr(at, end - at), static_cast<int>(at) + 1});
    at = end;
  }
  return words;
}

struct Connection {
  int line = 0;
  std::optional<std::uint64_t> waits_for;
  std::optional<std::uint64_t> sets_off;
};

class Matrix {
 public:
  Matrix(const RecordedCase& recorded, const std::string& file) : recorded_{recorded}, file_{file} {
    for (std::uint32_t i = 0; i < recorded.flows.size(); ++i) flow_by_id_.emplace(recorded.flows[i].id, i);
  }

  void read(std::string_view text) {
    connections_.resize(recorded_.flows.size());
    int number = 0;
    for (const std::string& line : split(text, '\n')) {
      ++number;
      const std::vector<Word> words = words_of(line);
      if (!words.empty() && !words[0].text.starts_with('#')) read_line(number, words);
    }
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      if (connections_[i].line == 0) refuse(0, 0, fmt::format("flow {} of the recording is missing", recorded_.flows[i].id), "");
    }
    problems_.throw_if_any();
  }

  // By flow: the one that it follows.
  std::vector<std::optional<std::uint32_t>> leaders() {
    std::map<std::uint64_t, std::uint32_t> by_trigger;
    for (std::uint32_t i = 0; i < connections_.size(); ++i) {
      if (!connections_[i].sets_off) continue;
      const auto [at, is_new] = by_trigger.emplace(*connections_[i].sets_off, i);
      if (!is_new) {
        refuse(connections_[i].line, 1, fmt::format("trigger {} is set off twice", at->first),
               fmt::format("by one flow (line {} has it)", connections_[at->second].line));
      }
    }
    std::vector<std::optional<std::uint32_t>> leaders(connections_.size());
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      if (!connections_[i].waits_for) continue;
      const auto at = by_trigger.find(*connections_[i].waits_for);
      if (at == by_trigger.end()) {
        refuse(connections_[i].line, 1, fmt::format("nothing sets off trigger {}", *connections_[i].waits_for), "a flow with send_done_trigger");
      } else {
        leaders[i] = at->second;
      }
    }
    refuse_circles(leaders);
    problems_.throw_if_any();
    return leaders;
  }

 private:
  void read_line(int line, const std::vector<Word>& words) {
    if (words[0].text == "trigger") return;
    if (words[0].text == "Nodes" || words[0].text == "Connections" || words[0].text == "Triggers") {
      if (words.size() != 2 || !number(line, words[1])) refuse(line, words[0].column, "not a count", fmt::format("{} N", words[0].text));
      return;
    }
    read_connection(line, words);
  }

  void read_connection(int line, const std::vector<Word>& words) {
    const std::size_t arrow = words[0].text.find("->");
    if (arrow == std::string_view::npos || words.size() < 7 || words.size() % 2 == 0) {
      return refuse(line, words[0].column, "not a connection", "SRC->DST id ID start T | trigger K size BYTES [send_done_trigger K]");
    }
    Connection connection{.line = line};
    std::optional<std::uint32_t> flow;
    std::optional<std::uint64_t> bytes;
    for (std::size_t i = 1; i < words.size(); i += 2) {
      const std::optional<std::uint64_t> value = number(line, words[i + 1]);
      if (!value) return;
      if (words[i].text == "id") {
        const auto at = flow_by_id_.find(std::to_string(*value));
        if (at == flow_by_id_.end()) return refuse(line, words[i + 1].column, fmt::format("the recording has no flow {}", *value), "");
        flow = at->second;
      } else if (words[i].text == "trigger") {
        connection.waits_for = value;
      } else if (words[i].text == "send_done_trigger") {
        connection.sets_off = value;
      } else if (words[i].text == "size") {
        bytes = value;
      } else if (words[i].text != "start") {
        return refuse(line, words[i].column, fmt::format("unknown word '{}'", words[i].text), "one of id, send_done_trigger, size, start, trigger");
      }
    }
    if (!flow || !bytes) return refuse(line, words[0].column, "id or size is missing", "both");
    if (connections_[*flow].line != 0) return refuse(line, words[0].column, fmt::format("flow {} again", recorded_.flows[*flow].id), "each flow once");
    const network::Message& message = recorded_.traffic.messages[*flow];
    const network::Route& route = recorded_.traffic.routes[message.routes.front()];
    const std::string ends = fmt::format("{}->{}", recorded_.traffic.wires[route.front()].from, recorded_.traffic.wires[route.back()].to);
    if (words[0].text != ends || static_cast<double>(*bytes) != message.bytes) {
      return refuse(line, words[0].column, "not the recording's flow", fmt::format("{} of {} bytes", ends, message.bytes));
    }
    connections_[*flow] = connection;
  }

  // Every flow has one leader, so a walk that is longer than there are flows goes round.
  void refuse_circles(const std::vector<std::optional<std::uint32_t>>& leaders) {
    std::vector<bool> sound(leaders.size(), false);
    for (std::uint32_t flow = 0; flow < leaders.size(); ++flow) {
      std::vector<std::uint32_t> walk{flow};
      while (leaders[walk.back()] && !sound[walk.back()] && walk.size() <= leaders.size()) walk.push_back(*leaders[walk.back()]);
      if (walk.size() > leaders.size()) return refuse(connections_[flow].line, 1, "waits for itself, through others", "a flow that starts by time");
      for (const std::uint32_t step : walk) sound[step] = true;
    }
  }

  std::optional<std::uint64_t> number(int line, const Word& word) {
    const std::optional<double> value = parse_number(word.text);
    if (value && *value >= 0.0 && *value <= 1e15 && *value == static_cast<double>(static_cast<std::uint64_t>(*value))) {
      return static_cast<std::uint64_t>(*value);
    }
    refuse(line, word.column, fmt::format("'{}' is not a whole number", word.text), "a number from 0 on");
    return std::nullopt;
  }

  void refuse(int line, int column, const std::string& problem, const std::string& expected) {
    problems_.add({.where = {file_, line, column}, .problem = problem, .expected = expected});
  }

  const RecordedCase& recorded_;
  const std::string& file_;
  std::map<std::string, std::uint32_t> flow_by_id_;
  std::vector<Connection> connections_;  // by flow
  Diagnostics problems_;
};

}  // namespace

void follow_matrix(RecordedCase& recorded, const std::string& file) {
  Matrix matrix{recorded, file};
  matrix.read(read_text_file(file, "a connection matrix of htsim"));
  const std::vector<std::optional<std::uint32_t>> leaders = matrix.leaders();
  for (std::size_t i = 0; i < leaders.size(); ++i) {
    if (!leaders[i]) continue;
    recorded.traffic.messages[i].after = leaders[i];
    recorded.traffic.messages[i].start = TimePoint{};
  }
}

}  // namespace stepcast::app
