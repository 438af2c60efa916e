#include "executor/common/record_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"
#include "sim/base/hash.hpp"

namespace stepcast::executor {
namespace {

constexpr std::string_view kMagic = "stepcast-records";
constexpr std::size_t kMostBytes = std::size_t{4} << 30U;

std::string checksum(std::string_view lines) {
  Fingerprint sum;
  sum.add(lines);
  char text[17] = {};
  std::to_chars(text, text + 16, sum.value(), 16);
  return text;
}

// One line, without quotes or line ends inside.
std::string clean(std::string_view text) {
  std::string out{text};
  for (char& c : out) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return out;
}

// Numbers of a line, one after the other.
class Fields {
 public:
  explicit Fields(std::string_view line) : rest_{line} {}
  std::string_view word() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
    const std::string_view word = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(word.size());
    return word;
  }
  template <class Int>
  std::optional<Int> number() {
    const std::string_view text = word();
    Int value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
  }
  [[nodiscard]] std::string_view rest() const { return rest_.empty() ? rest_ : rest_.substr(1); }

 private:
  std::string_view rest_;
};

// False: not a line of this form.
bool take(std::string_view line, Records& into) {
  Fields fields{line};
  const std::string_view kind = fields.word();
  if (kind == "fact") {
    const std::string_view key = fields.word();
    into.facts.emplace_back(key, fields.rest());
    return !key.empty();
  }
  if (kind == "step") {
    const auto step = fields.number<std::uint32_t>();
    const auto begin = fields.number<std::int64_t>();
    const auto end = fields.number<std::int64_t>();
    if (!step || !begin || !end) return false;
    into.steps.push_back({*step, {*begin, *end}, {}});
    return true;
  }
  if (kind == "value" && !into.steps.empty()) {
    const std::string_view name = fields.word();
    const auto value = fields.number<double>();
    if (name.empty() || !value) return false;
    into.steps.back().values.emplace_back(name, *value);
    return true;
  }
  if (kind == "i" && !into.steps.empty()) {
    const auto index = fields.number<std::uint32_t>();
    const auto begin = fields.number<std::int64_t>();
    const auto end = fields.number<std::int64_t>();
    if (!index || !begin || !end) return false;
    into.steps.back().instructions.push_back({*index, {*begin, *end}});
    return true;
  }
  return false;
}

}  // namespace

std::string Records::fact(std::string_view key) const {
  for (const auto& [name, value] : facts) {
    if (name == key) return value;
  }
  return {};
}

RecordWriter::RecordWriter(const std::string& path) : path_{path}, file_{::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644)} {
  if (file_ < 0) throw SystemError(path + ": cannot be written: " + std::strerror(errno));
  block(std::string{kMagic} + ' ' + std::to_string(kRecordFileVersion) + '\n', 1);
}

RecordWriter::~RecordWriter() {
  if (file_ >= 0) ::close(file_);
}

void RecordWriter::facts(const std::vector<std::pair<std::string, std::string>>& facts) {
  std::string lines;
  for (const auto& [key, value] : facts) lines += "fact " + clean(key) + ' ' + clean(value) + '\n';
  block(lines, facts.size());
}

void RecordWriter::steps(std::span<const StepRecord> steps) {
  const auto range = [](const Interval& time) { return ' ' + std::to_string(time.begin) + ' ' + std::to_string(time.end) + '\n'; };
  std::string lines;
  std::size_t count = 0;
  for (const StepRecord& step : steps) {
    lines += "step " + std::to_string(step.step) + range(step.time);
    for (const auto& [name, value] : step.values) {
      char number[32] = {};
      std::to_chars(number, number + sizeof number - 1, value);
      lines += "value " + clean(name) + ' ' + number + '\n';
    }
    for (const InstructionTime& i : step.instructions) lines += "i " + std::to_string(i.instruction) + range(i.time);
    count += 1 + step.values.size() + step.instructions.size();
  }
  block(lines, count);
}

void RecordWriter::block(std::string_view lines, std::size_t count) {
  const std::string text = std::string{lines} + "block " + std::to_string(count) + ' ' + checksum(lines) + '\n';
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t written = ::write(file_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw SystemError(path_ + ": cannot be written: " + std::strerror(errno));
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

Records parse_records(std::string_view text, const std::string& path) {
  Records whole;
  bool known = false;
  std::string_view rest = text;
  while (true) {
    Records block;
    std::size_t lines = 0;
    std::size_t at = 0;
    bool closed = false;
    for (std::size_t end; !closed && (end = rest.find('\n', at)) != std::string_view::npos; at = end + 1) {
      const std::string_view line = rest.substr(at, end - at);
      Fields fields{line};
      const std::string_view kind = fields.word();
      if (kind == "block") {
        if (fields.number<std::size_t>() != lines || fields.word() != checksum(rest.substr(0, at))) break;
        closed = true;
      } else if (kind == kMagic) {
        if (fields.number<int>() != kRecordFileVersion) break;
        known = true;
        ++lines;
      } else {
        if (!take(line, block)) break;
        ++lines;
      }
    }
    if (!closed) break;
    whole.facts.insert(whole.facts.end(), block.facts.begin(), block.facts.end());
    whole.steps.insert(whole.steps.end(), std::make_move_iterator(block.steps.begin()), std::make_move_iterator(block.steps.end()));
    rest.remove_prefix(at);
    if (!known) break;
  }
  if (!known) {
    throw UserError(Diagnostic{.where = {path, 1, 1}, .problem = "this is not a record file",
                               .expected = std::string{kMagic} + ' ' + std::to_string(kRecordFileVersion) + " on the first line", .hint = {}});
  }
  whole.bytes_left_out = rest.size();
  return whole;
}

Records read_records(const std::string& path) { return parse_records(read_file(path, kMostBytes), path); }

}  // namespace stepcast::executor
