// tests/support/csv.hpp — small CSV tables with a header line and quoted fields, for tests.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::test {

using CsvRow = std::map<std::string, std::string>;

inline std::vector<std::string> csv_fields(std::string_view line) {
  std::vector<std::string> fields{""};
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"') {
      if (quoted && i + 1 < line.size() && line[i + 1] == '"') fields.back() += line[++i];
      else quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  return fields;
}

// Fields hold no line breaks.
inline std::vector<CsvRow> csv_rows(std::string_view text) {
  std::vector<std::string> header;
  std::vector<CsvRow> rows;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (line.empty()) continue;
    const auto fields = csv_fields(line);
    if (header.empty()) {
      header = fields;
      continue;
    }
    CsvRow row;
    for (std::size_t i = 0; i < header.size(); ++i) row[header[i]] = i < fields.size() ? fields[i] : "";
    rows.push_back(row);
  }
  return rows;
}

}  // namespace stepcast::test
