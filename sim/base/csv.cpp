#include "sim/base/csv.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"
#include "sim/base/plain_text.hpp"
#include "sim/base/text.hpp"

namespace stepcast {
namespace {

// Splits the text into records; one call a record.
class Scanner {
 public:
  Scanner(std::string_view text, const std::string& file) : text_{text}, file_{file} {
    if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
  }

  // Empty at the end of the text. Blank lines are skipped.
  std::optional<CsvTable::Row> next() {
    while (!text_.empty() && (text_.front() == '\n' || text_.starts_with("\r\n"))) take_line_end();
    if (text_.empty()) return std::nullopt;
    CsvTable::Row row{.line = line_, .fields = {}};
    row.fields.push_back(field());
    while (!text_.empty() && text_.front() == ',') {
      text_.remove_prefix(1);
      row.fields.push_back(field());
    }
    take_line_end();
    return row;
  }

 private:
  std::string field() {
    if (text_.starts_with('"')) return quoted_field();
    const std::size_t end = std::min(text_.find_first_of(",\n"), text_.size());
    std::string_view value = text_.substr(0, end);
    text_.remove_prefix(end);
    if (value.ends_with('\r')) value.remove_suffix(1);
    return std::string{value};
  }

  std::string quoted_field() {
    const int opened = line_;
    text_.remove_prefix(1);
    std::string value;
    while (true) {
      const std::size_t quote = text_.find('"');
      if (quote == std::string_view::npos) throw refuse(opened, "a quoted field is never closed");
      value += text_.substr(0, quote);
      text_.remove_prefix(quote + 1);
      if (!text_.starts_with('"')) break;
      value += '"';
      text_.remove_prefix(1);
    }
    line_ += static_cast<int>(std::count(value.begin(), value.end(), '\n'));
    const bool ends = text_.empty() || text_.front() == ',' || text_.front() == '\n' || text_.starts_with("\r\n");
    if (!ends) throw refuse(line_, "text after a closing quote");
    return value;
  }

  void take_line_end() {
    if (text_.starts_with("\r\n")) text_.remove_prefix(1);
    if (text_.starts_with('\n')) {
      text_.remove_prefix(1);
      ++line_;
    }
  }

  UserError refuse(int line, const std::string& problem) const {
    return UserError(Diagnostic{.where = {file_, line, 1}, .problem = problem});
  }

  std::string_view text_;
  const std::string& file_;
  int line_ = 1;
};

}  // namespace

CsvTable CsvTable::parse(std::string_view text, const std::string& file) {
  expect_text(text, file, "comma-separated text with a header row");
  CsvTable table;
  table.file_ = file;
  Scanner scanner{text, file};
  std::optional<Row> header = scanner.next();
  if (!header) throw UserError(Diagnostic{.where = {file, 0, 0}, .problem = "empty: expected a header row"});
  table.header_ = std::move(header->fields);
  const std::string& first = table.header_.front();
  const auto refuse = [&](const char* problem, const char* hint) {
    throw UserError(Diagnostic{.where = {file, header->line, 1}, .problem = problem, .expected = "fields separated by commas, a row a line", .got = first, .hint = hint});
  };
  if (table.header_.size() == 1 && first.find_first_of(";\t") != std::string::npos)
    refuse("fields are separated by semicolons or tabs", "save the sheet with commas, and points in numbers");
  if (text.find('\n') == std::string_view::npos && text.find('\r') < text.size() - 1)
    refuse("lines end in CR alone, as old Macs write them", "tr '\\r' '\\n'");
  for (auto name = table.header_.begin(); name != table.header_.end(); ++name) {
    if (!name->empty() && std::find(table.header_.begin(), name, *name) != name)
      throw UserError(Diagnostic{.where = {file, header->line, 1}, .problem = fmt::format("two columns are called '{}'", *name), .expected = "a name for each"});
  }
  while (std::optional<Row> row = scanner.next()) {
    if (row->fields.size() != table.header_.size()) {
      throw UserError(Diagnostic{.where = {file, row->line, 1},
                                 .problem = "a row of another length than the header",
                                 .expected = fmt::format("{} fields", table.header_.size()),
                                 .got = fmt::format("{}", row->fields.size())});
    }
    table.rows_.push_back(std::move(*row));
  }
  return table;
}

CsvTable CsvTable::read(const std::string& file) { return parse(read_file(file), file); }

std::optional<std::size_t> CsvTable::column(std::string_view name) const {
  const auto it = std::find(header_.begin(), header_.end(), name);
  if (it == header_.end()) return std::nullopt;
  return static_cast<std::size_t>(std::distance(header_.begin(), it));
}

std::size_t CsvTable::require_column(std::string_view name) const {
  if (const std::optional<std::size_t> index = column(name)) return *index;
  Diagnostic missing{.where = {file_, 1, 1}, .problem = fmt::format("column '{}' is missing", name), .got = join(header_, ", ")};
  if (const std::optional<std::string> near = nearest_word(name, header_)) missing.hint = fmt::format("is '{}' meant?", *near);
  throw UserError(std::move(missing));
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string{text};
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace stepcast
