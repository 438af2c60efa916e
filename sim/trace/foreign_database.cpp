#include "sim/trace/foreign_database.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <sqlite3.h>

#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"
#include "sim/trace/sqlite_database.hpp"

namespace stepcast::trace {
namespace {

std::string quoted(const std::string& name) {
  std::string result = "\"";
  for (const char c : name) result += c == '"' ? std::string{"\"\""} : std::string{c};
  return result + '"';
}

struct Close {
  void operator()(sqlite3* db) const { sqlite3_close(db); }
};
struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

}  // namespace

class ForeignDatabase::Handle {
 public:
  explicit Handle(const std::string& path) : path_{path} {
    std::error_code ignored;
    const auto refuse_file = [&](const char* problem) { throw UserError(Diagnostic{.where = {path, 0, 0}, .problem = problem}); };
    if (std::filesystem::is_directory(path, ignored)) refuse_file("is a directory, not a database");
    if (!std::filesystem::exists(path, ignored)) refuse_file("no such file");
    if (std::filesystem::is_regular_file(path, ignored) && std::filesystem::file_size(path, ignored) == 0) refuse_file("is empty");
    const std::string uri = read_only_uri(path, has_log(path));
    sqlite3* raw = nullptr;
    const int status = sqlite3_open_v2(uri.c_str(), &raw, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
    db_.reset(raw);  // also after a failure
    if (status != SQLITE_OK) refuse(status);
  }

  [[noreturn]] void refuse(int status) const {
    const std::string reason = db_ ? sqlite3_errmsg(db_.get()) : sqlite3_errstr(status);
    const auto user = [&](const std::string& problem) { throw UserError(Diagnostic{.where = {path_, 0, 0}, .problem = problem}); };
    switch (status & 0xff) {
      case SQLITE_NOTADB: user("is not a SQLite database"); break;
      case SQLITE_CORRUPT: user("is a damaged database: " + reason); break;
      case SQLITE_CANTOPEN:
      case SQLITE_PERM:
      case SQLITE_READONLY: user("cannot be read by this user"); break;
      case SQLITE_ERROR: user("is not of the form that is expected: " + reason); break;
      default: break;
    }
    throw SystemError(fmt::format("{}: database error: {}", path_, reason));
  }

  void query(const std::string& sql, const std::function<void(const Row&)>& on_row) const {
    sqlite3_stmt* raw = nullptr;
    if (const int status = sqlite3_prepare_v2(db_.get(), sql.c_str(), -1, &raw, nullptr); status != SQLITE_OK) refuse(status);
    const std::unique_ptr<sqlite3_stmt, Finalize> statement{raw};
    for (;;) {
      const int status = sqlite3_step(raw);
      if (status == SQLITE_DONE) return;
      if (status != SQLITE_ROW) refuse(status);
      on_row(Row{raw});
    }
  }

 private:
  std::string path_;
  std::unique_ptr<sqlite3, Close> db_;
};

ForeignDatabase::ForeignDatabase(const std::string& path) : handle_{std::make_unique<Handle>(path)} {}
ForeignDatabase::~ForeignDatabase() = default;

std::int64_t ForeignDatabase::application() const {
  std::int64_t id = 0;
  query("PRAGMA application_id", [&](const Row& row) { id = row.integer(0).value_or(0); });
  return id;
}

std::vector<std::string> ForeignDatabase::tables() const {
  std::vector<std::string> names;
  query("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name", [&](const Row& row) { names.push_back(row.text(0).value_or("")); });
  return names;
}

std::vector<std::string> ForeignDatabase::columns(const std::string& table) const {
  std::vector<std::string> names;
  query("PRAGMA table_info(" + quoted(table) + ")", [&](const Row& row) { names.push_back(row.text(1).value_or("")); });
  return names;
}

void ForeignDatabase::query(const std::string& sql, const std::function<void(const Row&)>& on_row) const { handle_->query(sql, on_row); }

std::optional<std::int64_t> ForeignDatabase::Row::integer(int column) const {
  auto* statement = static_cast<sqlite3_stmt*>(statement_);
  if (sqlite3_column_type(statement, column) != SQLITE_INTEGER) return std::nullopt;
  return sqlite3_column_int64(statement, column);
}

std::optional<std::string> ForeignDatabase::Row::text(int column) const {
  auto* statement = static_cast<sqlite3_stmt*>(statement_);
  if (sqlite3_column_type(statement, column) == SQLITE_NULL) return std::nullopt;
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
  const int size = sqlite3_column_bytes(statement, column);
  return bytes == nullptr ? std::string{} : std::string{bytes, static_cast<std::size_t>(size)};
}

}  // namespace stepcast::trace
