#include "calibration/smi_log.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "calibration/json_stream.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/plain_text.hpp"
#include "sim/base/text.hpp"

namespace stepcast::calibration {
namespace {

// Names of --query-gpu, old and new, and of dmon, to what they are.
struct Known {
  const char* column;
  const char* name;
  const char* unit;
};
constexpr std::array kKnown{
    Known{"power.draw", "power", "W"}, Known{"power.draw.average", "power, average", "W"}, Known{"power.draw.instant", "power, instant", "W"},
    Known{"power.limit", "power limit", "W"}, Known{"enforced.power.limit", "power limit, enforced", "W"}, Known{"pwr", "power", "W"},
    Known{"clocks.sm", "SM clock", "MHz"}, Known{"clocks.current.sm", "SM clock", "MHz"}, Known{"pclk", "SM clock", "MHz"},
    Known{"clocks.gr", "graphics clock", "MHz"}, Known{"clocks.current.graphics", "graphics clock", "MHz"},
    Known{"clocks.mem", "memory clock", "MHz"}, Known{"clocks.current.memory", "memory clock", "MHz"}, Known{"mclk", "memory clock", "MHz"},
    Known{"temperature.gpu", "GPU temperature", "C"}, Known{"gtemp", "GPU temperature", "C"}, Known{"temp", "GPU temperature", "C"},
    Known{"temperature.memory", "memory temperature", "C"}, Known{"mtemp", "memory temperature", "C"},
    Known{"utilization.gpu", "GPU utilisation", "%"}, Known{"sm", "GPU utilisation", "%"},
    Known{"utilization.memory", "memory utilisation", "%"}, Known{"mem", "memory utilisation", "%"},
    Known{"memory.used", "memory used", "MiB"}, Known{"fb", "memory used", "MiB"},
    Known{"memory.free", "memory free", "MiB"}, Known{"memory.total", "memory total", "MiB"},
    // dcgmi dmon: short names of fields (dcgm_fields.cpp)
    Known{"POWER", "power", "W"}, Known{"POWR", "power", "W"}, Known{"TOTEC", "energy", "mJ"}, Known{"SMCLK", "SM clock", "MHz"}, Known{"MMCLK", "memory clock", "MHz"},
    Known{"TMPTR", "GPU temperature", "C"}, Known{"GPUT", "GPU temperature", "C"}, Known{"MMTMP", "memory temperature", "C"},
    Known{"GPUTL", "GPU utilisation", "%"}, Known{"MCUTL", "memory utilisation", "%"}, Known{"FBUSD", "memory used", "MiB"}, Known{"FBFRE", "memory free", "MiB"},
    Known{"FBTTL", "memory total", "MiB"}, Known{"GRACT", "graphics engine active", "1"}, Known{"SMACT", "SMs active", "1"}, Known{"SMOCC", "SM occupancy", "1"},
    Known{"TENSO", "tensor cores active", "1"}, Known{"DRAMA", "memory active", "1"}, Known{"PCITX", "PCIe sent", "B/s"}, Known{"PCIRX", "PCIe received", "B/s"},
    Known{"NVLTX", "NVLink sent", "B/s"}, Known{"NVLRX", "NVLink received", "B/s"},
    Known{"clocks_throttle_reasons.active", "throttle reasons", ""}, Known{"clocks_event_reasons.active", "throttle reasons", ""},
};

// nvml.h, nvmlClocksEventReasons.
struct Reason {
  std::uint64_t bit;
  const char* name;
};
constexpr std::array kReasons{Reason{0x1, "idle"}, Reason{0x2, "application clocks"}, Reason{0x4, "software power cap"}, Reason{0x8, "hardware slowdown"},
                              Reason{0x10, "sync boost"}, Reason{0x20, "software thermal"}, Reason{0x40, "hardware thermal"}, Reason{0x80, "power brake"},
                              Reason{0x100, "display clocks"}};

constexpr std::array kFacts{"name", "gpu_name", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "driver_version", "serial", "gpu_serial", "vbios_version"};
constexpr std::array kIdentity{"index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "serial", "gpu_serial"};  // what tells GPUs apart, best first

constexpr std::size_t kMostGpus = 4096;

struct Column {
  std::string field;    // "power.draw"
  std::string unit;     // of the header; may be empty
  std::string counter;  // what it is called here
};

bool missing(std::string_view cell) {
  for (const char* word : {"", "-", "N/A", "[N/A]", "[Not Supported]", "Not Supported", "[Unknown Error]", "ERR!", "[GPU requires reset]", "[Insufficient Permissions]",
                           "[Not Found]"}) {
    if (cell == word) return true;
  }
  return false;
}

std::string counter_name(const std::string& field) {
  const auto at = std::find_if(kKnown.begin(), kKnown.end(), [&](const Known& k) { return field == k.column; });
  return at == kKnown.end() ? field : at->name;
}

std::string usual_unit(const std::string& field) {
  const auto at = std::find_if(kKnown.begin(), kKnown.end(), [&](const Known& k) { return field == k.column; });
  return at == kKnown.end() ? "" : at->unit;
}

template <class List>
bool contains(const List& list, const std::string& word) {
  return std::any_of(list.begin(), list.end(), [&](const char* w) { return word == w; });
}

// A name as --query-gpu has it: words in lower case with dots or underscores.
bool looks_like_field(const std::string& field) {
  if (contains(kFacts, field) || contains(kIdentity, field) || field == "timestamp" || field == "pstate" || field == "count" || !usual_unit(field).empty()) return true;
  if (field == "clocks_throttle_reasons.active" || field == "clocks_event_reasons.active") return true;
  for (const char* start : {"power.", "clocks.", "clocks_", "temperature.", "utilization.", "memory.", "fan.", "pcie.", "ecc.", "encoder.", "enforced.", "mig.", "compute_", "gpu_",
                            "persistence_", "display_", "accounting.", "retired_pages.", "remapped_rows.", "fabric.", "protected_memory.", "gom.", "driver_model.", "inforom."}) {
    if (field.starts_with(start)) return true;
  }
  return false;
}

Column column_of(std::string_view text) {
  Column column;
  std::string_view name = trim(text);
  if (const std::size_t bracket = name.find(" ["); bracket != std::string_view::npos && name.ends_with("]")) {
    column.unit = std::string{name.substr(bracket + 2, name.size() - bracket - 3)};
    name = name.substr(0, bracket);
  }
  column.field = printable(name.substr(0, 80));
  column.counter = counter_name(column.field);
  return column;
}

// Days from 1970-01-01 (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms").
std::int64_t days_of(std::int64_t y, std::int64_t m, std::int64_t d) {
  y -= m <= 2 ? 1 : 0;
  const std::int64_t era = (y >= 0 ? y : y - 399) / 400;
  const std::int64_t yoe = y - era * 400;
  const std::int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
  const std::int64_t doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
  return era * 146097 + doe - 719468;
}

// "2026/10/04 01:00:00.100", "20261004 01:00:00": milliseconds since 1970 of a clock without a zone.
std::optional<std::int64_t> milliseconds_of(std::string_view text) {
  std::vector<std::int64_t> numbers;
  std::vector<std::size_t> digits;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] < '0' || text[i] > '9') {
      if (std::string_view{"/-: .T"}.find(text[i]) == std::string_view::npos) return std::nullopt;
      ++i;
      continue;
    }
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data() + i, text.data() + text.size(), value);
    if (error != std::errc{}) return std::nullopt;
    digits.push_back(static_cast<std::size_t>(end - text.data()) - i);
    numbers.push_back(value);
    i = static_cast<std::size_t>(end - text.data());
  }
  if (!numbers.empty() && digits[0] == 8) {  // dmon -o D
    const std::int64_t date = numbers[0];
    numbers.erase(numbers.begin());
    numbers.insert(numbers.begin(), {date / 10000, date / 100 % 100, date % 100});
    digits.insert(digits.begin(), {4, 2});
  }
  if (numbers.size() < 6 || numbers.size() > 7) return std::nullopt;
  if (numbers[0] < 1970 || numbers[0] > 2200 || numbers[1] < 1 || numbers[1] > 12 || numbers[2] < 1 || numbers[2] > 31 || numbers[3] > 23 || numbers[4] > 59 || numbers[5] > 60) {
    return std::nullopt;
  }
  std::int64_t ms = ((days_of(numbers[0], numbers[1], numbers[2]) * 24 + numbers[3]) * 60 + numbers[4]) * 60 + numbers[5];
  ms *= 1000;
  if (numbers.size() == 7) ms += static_cast<std::int64_t>(std::llround(static_cast<double>(numbers[6]) * std::pow(10.0, 3.0 - static_cast<double>(std::min<std::size_t>(digits.back(), 18)))));
  return ms;
}

struct Sample {
  std::optional<std::int64_t> ms;
  std::string time;                  // as printed
  std::string gpu;                   // identity; empty: none is told
  std::map<std::string, std::string> facts;
  struct Value {
    std::string counter;
    std::string unit;
    double value;
  };
  std::vector<Value> values;
};

class Reader {
 public:
  Reader(std::string_view text, std::string file, const SmiOptions& options) : text_{text}, file_{std::move(file)}, options_{options} {}

  SmiLog read() {
    if (text_.starts_with("\xef\xbb\xbf")) text_.remove_prefix(3);  // UTF-8's byte order mark
    if (trim(text_).empty()) refuse("is empty");
    if (const std::optional<NoText> other = other_form(text_)) refuse(other->problem, other->hint);
    if (text_.find('\0') != std::string_view::npos) refuse("is no text");
    if (text_.find("DCGM_FI_") != std::string_view::npos || text_.find("dcgm_") != std::string_view::npos) refuse("names fields of DCGM: a list of counters, or a scrape of its exporter", "dcgmi dmon -e 155,100,150 and nvidia-smi dmon write what can be read here");
    if (!options_.columns.empty()) {
      for (const std::string& name : options_.columns) columns_.push_back(column_of(name));
      for (const Column& column : columns_) {
        if (!looks_like_field(column.field)) refuse_columns(column.field);
      }
      given_ = true;
      log_.form = "query-gpu";
    }
    std::size_t begin = 0;
    while (begin < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', begin), text_.size());
      ++line_;
      take(trim(printable(text_.substr(begin, end - begin))));
      begin = end + 1;
    }
    if (samples_.empty()) refuse_without_rows();
    tell_apart();
    place_in_time();
    collect();
    return std::move(log_);
  }

 private:
  [[noreturn]] void refuse(const std::string& problem, const std::string& hint = "", int line = 0) const {
    throw UserError(Diagnostic{.where = {file_, line, line > 0 ? 1 : 0}, .problem = problem, .expected = "output of nvidia-smi --query-gpu ... --format=csv, of nvidia-smi dmon, or of dcgmi dmon", .hint = hint});
  }

  [[noreturn]] static void refuse_columns(const std::string& field) {
    throw UserError(Diagnostic{.path = "--columns", .problem = "no field of --query-gpu", .expected = "the list that --query-gpu was given, e.g. timestamp,index,power.draw", .got = field});
  }

  [[noreturn]] void refuse_without_rows() const {
    if (columns_.empty() && log_.form.empty()) refuse("has no row of nvidia-smi: it begins '" + first_line_ + "'");
    refuse(skipped_.empty() ? "has a header and no rows" : "has a header and no row that can be read");
  }

  void skip(const std::string& reason) { ++skipped_[reason]; }

  void take(std::string_view line) {
    if (line.empty()) return;
    if (first_line_.empty()) first_line_ = printable(line.substr(0, 60));
    if (line.starts_with("Field \"") && line.find("is not a valid field to query") != std::string_view::npos) {
      refuse("is what nvidia-smi says of a wrong field: " + printable(line.substr(0, 120)), "", line_);
    }
    if (const std::string_view title = trim(line.starts_with("#") ? line.substr(1) : std::string_view{}); title.starts_with("Entity")) return take_dcgm_heading(title);
    if (log_.form == "dcgmi dmon") return take_dcgm_row(line);
    if (line.starts_with("#")) return take_dmon_heading(line.substr(1));
    if (log_.form == "dmon") return take_dmon_row(line);
    take_query(line);
  }

  // --- dmon: names, then units ---

  void take_dmon_heading(std::string_view line) {
    std::vector<std::string> words = words_of(line);
    if (words.empty()) return;
    const auto has = [&](const char* word) { return std::find(words.begin(), words.end(), word) != words.end(); };
    if (has("pid") && has("command")) refuse("is of nvidia-smi pmon: processes, no counters", "nvidia-smi dmon -s pucm", line_);
    if (has("gpu")) {
      columns_.clear();
      for (const std::string& word : words) {
        std::string name = word;
        if (name == "Date") name = "date";
        if (name == "Time") name = "time";
        columns_.push_back({name, usual_unit(name), counter_name(name)});
      }
      log_.form = "dmon";
      return;
    }
    if (log_.form != "dmon") refuse("has a heading that is not of nvidia-smi dmon: '" + printable(line.substr(0, 60)) + "'", "", line_);
    for (std::size_t i = 0; i < std::min(words.size(), columns_.size()); ++i) {
      const std::string& unit = words[i];
      if (unit != "Idx" && unit != "bool" && unit != "YYYYMMDD" && unit != "HH:MM:SS" && columns_[i].unit.empty()) columns_[i].unit = unit == "MB" ? "MiB" : printable(unit);
    }
  }

  // --- dcgmi dmon: "#Entity  POWER  SMCLK", then "ID" with units or none, then "GPU 0  71.2  1980" ---

  void take_dcgm_heading(std::string_view line) {
    columns_.clear();
    for (const std::string& word : words_of(line.substr(6))) columns_.push_back({printable(word), usual_unit(word), counter_name(word)});
    if (columns_.empty()) refuse("has a heading of dcgmi dmon without a field", "dcgmi dmon -e 155,100,150,203", line_);
    log_.form = "dcgmi dmon";
  }

  void take_dcgm_row(std::string_view line) {
    const std::vector<std::string> words = words_of(line);
    if (words.front() == "ID" || words.front() == "Id") return;  // units, not aligned with anything where some are missing
    if (words.front() != "GPU") return skip("rows of what is no GPU");
    std::int64_t index = 0;
    const std::string number = words.size() > 1 ? words[1] : "";
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), index);
    if (error != std::errc{} || end != number.data() + number.size() || index < 0) return skip("rows without a GPU's number");
    if (words.size() != columns_.size() + 2) return skip("rows with another number of cells than the header");
    Sample sample;
    sample.gpu = std::to_string(index);
    sample.facts["index"] = sample.gpu;
    for (std::size_t i = 0; i < columns_.size(); ++i) add_value(sample, columns_[i], words[i + 2]);
    keep(std::move(sample));
  }

  static std::vector<std::string> words_of(std::string_view line) {
    std::vector<std::string> words;
    for (const std::string& word : split(std::string{line}, ' ')) {
      const std::string_view cut = trim(word);
      if (!cut.empty()) words.emplace_back(cut);
    }
    return words;
  }

  void take_dmon_row(std::string_view line) {
    const std::vector<std::string> cells = words_of(line);
    if (cells.size() != columns_.size()) return skip("rows with another number of cells than the header");
    Sample sample;
    std::string date;
    std::string time;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const Column& column = columns_[i];
      if (column.field == "gpu") {
        std::int64_t index = 0;
        const auto [end, error] = std::from_chars(cells[i].data(), cells[i].data() + cells[i].size(), index);
        if (error != std::errc{} || end != cells[i].data() + cells[i].size() || index < 0) return skip("rows without a GPU's number");
        sample.gpu = std::to_string(index);
        sample.facts["index"] = sample.gpu;
      } else if (column.field == "date") {
        date = cells[i];
      } else if (column.field == "time") {
        time = cells[i];
      } else {
        add_value(sample, column, cells[i]);
      }
    }
    if (!time.empty()) {
      sample.time = (date.empty() ? "19700101" : date) + " " + time;
      sample.ms = milliseconds_of(sample.time);
    }
    keep(std::move(sample));
  }

  // --- query-gpu ---

  static std::vector<std::string> cells_of(std::string_view line) {
    std::vector<std::string> cells;
    for (const std::string& cell : split(std::string{line}, ',')) cells.emplace_back(trim(cell));
    return cells;
  }

  void take_query(std::string_view line) {
    const std::vector<std::string> cells = cells_of(line);
    std::vector<Column> header;
    std::size_t fields = 0;
    for (const std::string& cell : cells) {
      header.push_back(column_of(cell));
      if (looks_like_field(header.back().field)) ++fields;
    }
    const bool is_header = fields > 0 && fields * 2 > cells.size();
    if (is_header) {
      if (!given_) columns_ = header;
      if (given_ && header.size() != columns_.size()) {
        throw UserError(Diagnostic{.where = {file_, line_, 1}, .path = "--columns", .problem = "the file has a header of its own, with another number of columns",
                                   .expected = fmt::format("{} columns", header.size()), .got = fmt::format("{}", columns_.size()), .hint = "leave --columns out"});
      }
      log_.form = "query-gpu";
      return;
    }
    if (columns_.empty()) {
      std::size_t numbers = 0;
      for (const std::string& cell : cells) numbers += cell_value(cell, "") || missing(cell) ? 1 : 0;
      if (cells.size() >= 2 && numbers * 3 >= cells.size()) {
        refuse("has no header, so that nothing says what its columns are", "give the list of --query-gpu: --columns index,power.draw,...", line_);
      }
      std::vector<std::string> names;
      for (const Column& column : header) names.push_back(column.field);
      if (cells.size() >= 2) refuse("has no column of nvidia-smi among " + join(std::span{names}.first(std::min<std::size_t>(names.size(), 8)), ", "), "", line_);
      refuse("is not of nvidia-smi: line " + std::to_string(line_) + " is '" + printable(line.substr(0, 60)) + "'");
    }
    if (cells.size() != columns_.size()) return skip("rows with another number of cells than the header");
    Sample sample;
    std::map<std::string, std::string> identity;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const Column& column = columns_[i];
      if (column.field == "timestamp") {
        sample.time = printable(cells[i]);
        sample.ms = milliseconds_of(cells[i]);
        if (!sample.ms) return skip("rows whose timestamp cannot be read");
        continue;
      }
      if (contains(kIdentity, column.field)) identity[column.field] = printable(cells[i]);
      if (contains(kFacts, column.field) || column.field == "index" || column.field == "count") {
        if (!missing(cells[i])) sample.facts[column.field] = printable(cells[i]);
        continue;
      }
      add_value(sample, column, cells[i]);
    }
    for (const char* field : kIdentity) {
      if (const auto at = identity.find(field); at != identity.end() && !missing(at->second)) {
        sample.gpu = at->second;
        break;
      }
    }
    keep(std::move(sample));
  }

  struct CellValue {
    double value;
    std::string unit;
  };

  // "107.17 W", "0x0000000000000004", "P2", "Active".
  static std::optional<CellValue> cell_value(std::string_view cell, const std::string& field) {
    if (cell == "Active" || cell == "Enabled" || cell == "Yes") return CellValue{1.0, ""};
    if (cell == "Not Active" || cell == "Disabled" || cell == "No") return CellValue{0.0, ""};
    if (cell.starts_with("0x")) {
      std::uint64_t bits = 0;
      const auto [end, error] = std::from_chars(cell.data() + 2, cell.data() + cell.size(), bits, 16);
      if (error != std::errc{} || end != cell.data() + cell.size()) return std::nullopt;
      return CellValue{static_cast<double>(bits), ""};
    }
    if (field == "pstate" && cell.starts_with("P")) cell.remove_prefix(1);
    const std::size_t space = cell.find(' ');
    const auto number = parse_number(cell.substr(0, space));
    if (!number) return std::nullopt;
    return CellValue{*number, space == std::string_view::npos ? "" : std::string{trim(cell.substr(space + 1))}};
  }

  void add_value(Sample& sample, const Column& column, const std::string& cell) {
    if (missing(cell)) return skip("cells without a value (" + column.field + ")");
    const auto value = cell_value(cell, column.field);
    if (!value) return skip("cells of text (" + column.field + ")");
    if (column.counter == "throttle reasons") throttle(static_cast<std::uint64_t>(std::max(0.0, value->value)));
    std::string unit = !value->unit.empty() ? printable(value->unit) : column.unit.empty() ? usual_unit(column.field) : column.unit;
    double number = value->value;
    if (unit == "mW") {
      unit = "W";
      number *= 1e-3;
    }
    sample.values.push_back({column.counter, unit, number});
  }

  void throttle(std::uint64_t bits) {
    ++log_.throttle_samples;
    for (const Reason& reason : kReasons) {
      if ((bits & reason.bit) != 0) ++log_.throttled[reason.name];
    }
  }

  void keep(Sample&& sample) {
    if (sample.values.empty()) return skip("rows without a value");
    samples_.push_back(std::move(sample));
  }

  // --- afterwards ---

  // Without a column that names the GPU: rows come in bursts, one row a GPU, and a pause follows.
  void tell_apart() {
    const bool told = std::all_of(samples_.begin(), samples_.end(), [](const Sample& s) { return !s.gpu.empty(); });
    if (told) return;
    const std::size_t gpus = burst_size();
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      if (samples_[i].gpu.empty()) samples_[i].gpu = std::to_string(i % gpus);
    }
    log_.notes.push_back(gpus == 1 ? "no column tells GPUs apart: taken as one" : fmt::format("no column tells GPUs apart: rows come in bursts of {}, taken as that many GPUs in this order", gpus));
  }

  [[nodiscard]] std::size_t burst_size() const {
    const std::size_t n = samples_.size();
    for (std::size_t size = 2; size <= 16 && 2 * size <= n; ++size) {
      std::int64_t within = 0;
      std::int64_t between = std::numeric_limits<std::int64_t>::max();
      bool sound = true;
      for (std::size_t i = 1; i < n && sound; ++i) {
        sound = samples_[i].ms && samples_[i - 1].ms;
        if (!sound) break;
        const std::int64_t gap = *samples_[i].ms - *samples_[i - 1].ms;
        if (i % size == 0) {
          between = std::min(between, gap);
        } else {
          within = std::max(within, gap);
        }
      }
      if (sound && within >= 0 && between > 5 * within && between > 0) return size;
    }
    return 1;
  }

  void place_in_time() {
    const bool timed = std::all_of(samples_.begin(), samples_.end(), [](const Sample& s) { return s.ms.has_value(); });
    if (timed) {
      const auto first = std::min_element(samples_.begin(), samples_.end(), [](const Sample& a, const Sample& b) { return *a.ms < *b.ms; });
      log_.started = first->time;
      first_ms_ = *first->ms;
      return drop_late();
    }
    // One tick ends where a GPU comes again.
    std::set<std::string> seen;
    std::int64_t tick = 0;
    for (Sample& sample : samples_) {
      if (!seen.insert(sample.gpu).second) {
        seen = {sample.gpu};
        ++tick;
      }
      sample.ms = static_cast<std::int64_t>(std::llround(static_cast<double>(tick) * options_.interval_s * 1000.0));
    }
    drop_late();
    if (tick > 0) log_.notes.push_back(fmt::format("no times: samples are taken to be {:g} s apart (--interval says otherwise)", options_.interval_s));
  }

  void drop_late() {
    constexpr std::int64_t kMost = std::int64_t{100} * 24 * 3600 * 1000;  // the store holds 106 days
    const std::size_t late = std::erase_if(samples_, [&](const Sample& s) { return *s.ms - first_ms_ > kMost; });
    if (late > 0) skipped_["rows more than 100 days after the first"] += late;
  }

  void collect() {
    std::map<std::string, std::size_t> index;
    std::vector<std::string> order;
    for (const Sample& sample : samples_) {
      if (index.try_emplace(sample.gpu, index.size()).second) order.push_back(sample.gpu);
    }
    if (order.size() > kMostGpus) refuse(fmt::format("has {} GPUs, more than one machine's", order.size()));
    // Numbers in their order, other names as they come.
    const bool numbers = std::all_of(order.begin(), order.end(), [](const std::string& g) { return g.size() < 6 && parse_number(g).has_value(); });
    if (numbers) std::sort(order.begin(), order.end(), [](const std::string& a, const std::string& b) { return *parse_number(a) < *parse_number(b); });
    for (std::size_t i = 0; i < order.size(); ++i) index[order[i]] = i;
    for (const std::string& gpu : order) log_.gpus.push_back({.label = "GPU " + gpu, .facts = {}, .counters = {}});
    std::map<std::pair<std::size_t, std::string>, std::size_t> counters;
    std::int64_t last = 0;
    for (const Sample& sample : samples_) {
      const std::size_t g = index.at(sample.gpu);
      SmiGpu& gpu = log_.gpus[g];
      gpu.facts.insert(sample.facts.begin(), sample.facts.end());
      const std::int64_t ms = *sample.ms - first_ms_;
      last = std::max(last, ms);
      for (const Sample::Value& v : sample.values) {
        const auto [at, added] = counters.try_emplace({g, v.counter}, gpu.counters.size());
        if (added) gpu.counters.push_back({.name = v.counter, .unit = v.unit, .worker = RankId{g}, .samples = {}});
        trace::Counter& counter = gpu.counters[at->second];
        if (counter.unit != v.unit) {
          skip("cells in another unit than before (" + v.counter + ")");
          continue;
        }
        counter.samples.push_back({TimePoint::at(Duration::microseconds(ms * 1000)), v.value});
      }
    }
    for (SmiGpu& gpu : log_.gpus) {
      for (trace::Counter& counter : gpu.counters) {
        std::stable_sort(counter.samples.begin(), counter.samples.end(), [](const auto& a, const auto& b) { return a.time < b.time; });
      }
    }
    log_.seconds = static_cast<double>(last) * 1e-3;
    log_.rows = samples_.size();
    log_.skipped = skipped_;
  }

  std::string_view text_;
  std::string file_;
  const SmiOptions& options_;
  SmiLog log_;
  std::vector<Column> columns_;
  bool given_ = false;
  int line_ = 0;
  std::string first_line_;
  std::vector<Sample> samples_;
  std::map<std::string, std::size_t> skipped_;
  std::int64_t first_ms_ = 0;
};

}  // namespace

SmiLog read_smi_log(std::string_view text, const std::string& file, const SmiOptions& options) { return Reader{text, file, options}.read(); }

}  // namespace stepcast::calibration
