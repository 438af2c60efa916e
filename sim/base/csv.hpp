// sim/base/csv.hpp — comma-separated tables with a header row (RFC 4180: quoted fields, doubled
// quotes, line breaks inside quotes; CR LF and a leading byte-order mark are accepted).
// A row with another number of fields than the header, or an open quote, is a UserError with its line.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast {

class CsvTable {
 public:
  struct Row {
    int line = 0;                     // 1-based, where the row starts
    std::vector<std::string> fields;  // as many as the header has
  };

  // `file` names the source in errors. Throws UserError; also when there is no header.
  static CsvTable parse(std::string_view text, const std::string& file);
  static CsvTable read(const std::string& file);

  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] const std::vector<std::string>& header() const { return header_; }
  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }
  [[nodiscard]] std::optional<std::size_t> column(std::string_view name) const;
  // Throws UserError naming the missing column and the nearest one there is.
  [[nodiscard]] std::size_t require_column(std::string_view name) const;

 private:
  std::string file_;
  std::vector<std::string> header_;
  std::vector<Row> rows_;
};

// The field quoted if it needs to be.
std::string csv_field(std::string_view text);

}  // namespace stepcast
