// sim/trace/foreign_database.hpp — SQLite files of other programs, read only: whatever the file, it is as before afterwards, and nothing
// is left beside it.
//
// Errors   UserError for a file that is missing, no database, damaged, or misses what is asked for; SystemError when the disk refuses.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace stepcast::trace {

class ForeignDatabase {
 public:
  explicit ForeignDatabase(const std::string& path);
  ~ForeignDatabase();
  ForeignDatabase(const ForeignDatabase&) = delete;
  ForeignDatabase& operator=(const ForeignDatabase&) = delete;

  [[nodiscard]] std::int64_t application() const;                                  // PRAGMA application_id
  [[nodiscard]] std::vector<std::string> tables() const;                           // sorted
  [[nodiscard]] std::vector<std::string> columns(const std::string& table) const;  // empty: no such table

  // A row of a query; a value that is not of the kind asked for is empty.
  class Row {
   public:
    explicit Row(void* statement) : statement_{statement} {}
    [[nodiscard]] std::optional<std::int64_t> integer(int column) const;
    [[nodiscard]] std::optional<std::string> text(int column) const;

   private:
    void* statement_;
  };
  void query(const std::string& sql, const std::function<void(const Row&)>& on_row) const;

 private:
  class Handle;
  std::unique_ptr<Handle> handle_;
};

}  // namespace stepcast::trace
