#include "sim/trace/sqlite_database.hpp"

#include <unistd.h>

#include <filesystem>

#include <fmt/format.h>

#include "sim/base/check.hpp"
#include "sim/base/diagnostic.hpp"
#include "sim/base/file.hpp"

namespace stepcast::trace {
namespace {

UserError user_error(const std::string& path, const std::string& problem, const std::string& hint) {
  return UserError(Diagnostic{.where = {path, 0, 0}, .problem = problem, .hint = hint});
}

// For a URI: what stands in the path for itself.
std::string escaped(const std::string& path) {
  std::string result;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '?' || c == '#' || c == '%' || byte < 0x21 || byte > 0x7e) {
      result += fmt::format("%{:02X}", byte);
    } else {
      result += c;
    }
  }
  return result;
}

// A folder in which no log can be begun: a read-only file system, or another user's.
bool may_write_beside(const std::string& path) {
  const std::string folder = std::filesystem::path{path}.parent_path().string();
  return ::access(folder.empty() ? "." : folder.c_str(), W_OK) == 0;
}

}  // namespace

bool has_log(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path + "-wal", ignored) && std::filesystem::file_size(path + "-wal", ignored) > 0;
}

std::string read_only_uri(const std::string& path, bool log) {
  std::error_code ignored;
  return "file:" + escaped(std::filesystem::absolute(path, ignored).string()) + (log ? "?mode=ro" : "?mode=ro&immutable=1");
}

Connection::Connection(const std::string& path, bool may_create, std::chrono::milliseconds patience)
    : path_{path}, patience_{patience} {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw user_error(path, "is a directory, not a database", "");
  if (!may_create && !std::filesystem::exists(path, ignored)) throw user_error(path, "no such file", "");
  const bool as_it_lies = !may_create && !may_write_beside(path);
  const int flags = SQLITE_OPEN_NOMUTEX | (as_it_lies ? SQLITE_OPEN_READONLY | SQLITE_OPEN_URI : SQLITE_OPEN_READWRITE | (may_create ? SQLITE_OPEN_CREATE : 0));
  sqlite3* handle = nullptr;
  const int status = sqlite3_open_v2(as_it_lies ? read_only_uri(path, has_log(path)).c_str() : path.c_str(), &handle, flags, nullptr);
  handle_.reset(handle);  // also after a failure
  if (status != SQLITE_OK) refuse(status);
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_busy_timeout(handle, static_cast<int>(patience.count()));
}

void Connection::refuse(int status) const {
  const std::string reason = handle_ ? sqlite3_errmsg(handle_.get()) : sqlite3_errstr(status);
  switch (status & 0xff) {
    case SQLITE_NOTADB:
      throw user_error(path_, "is not a database", "name a file written with --db, or a new one");
    case SQLITE_CORRUPT:
      throw user_error(path_, "is a damaged database: " + reason, "restore a copy, or name a new file");
    case SQLITE_CANTOPEN:
      throw user_error(path_, "cannot be opened as a database", "does its directory exist, and may this user write there?");
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      throw user_error(path_, "may not be written by this user", "copy it to a place of your own");
    case SQLITE_ERROR:  // our statements are right where the tables are
      if (reason.starts_with("no such table") || reason.starts_with("no such column") || reason.find(" has no column ") != std::string::npos) {
        throw user_error(path_, "is not as stepcast writes it: " + reason, "restore a copy, or name a new file and run, import or measure into it");
      }
      throw SystemError(fmt::format("{}: database error: {}", path_, reason));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw SystemError(fmt::format("{}: another program kept the database locked for {} ms", path_, patience_.count()));
    default: throw SystemError(fmt::format("{}: database error: {}", path_, reason));
  }
}

void Connection::execute(const char* sql) const {
  const int status = patiently([&] { return sqlite3_exec(handle(), sql, nullptr, nullptr, nullptr); });
  if (status != SQLITE_OK) refuse(status);
}

std::int64_t Connection::integer(const char* sql) const {
  Statement query{*this, sql};
  SIM_CHECK(query.next(), sql);
  return query.integer();
}

Statement::Statement(const Connection& connection, const char* sql) : connection_{connection} {
  sqlite3_stmt* handle = nullptr;
  check(sqlite3_prepare_v2(connection.handle(), sql, -1, &handle, nullptr));
  handle_.reset(handle);
}

void Statement::check(int status) const {
  if (status != SQLITE_OK && status != SQLITE_DONE && status != SQLITE_ROW) connection_.refuse(status);
}

Statement& Statement::bind(std::int64_t value) {
  check(sqlite3_bind_int64(handle_.get(), ++parameter_, value));
  return *this;
}

Statement& Statement::bind(double value) {
  check(sqlite3_bind_double(handle_.get(), ++parameter_, value));
  return *this;
}

Statement& Statement::bind(const std::string& text) {
  // Static: the caller keeps the text until the row is written.
  check(sqlite3_bind_text64(handle_.get(), ++parameter_, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8));
  return *this;
}

Statement& Statement::bind_null() {
  check(sqlite3_bind_null(handle_.get(), ++parameter_));
  return *this;
}

void Statement::run() {
  check(connection_.patiently([&] { return sqlite3_step(handle_.get()); }));
  check(sqlite3_reset(handle_.get()));
  parameter_ = 0;
}

bool Statement::next() {
  column_ = 0;
  const int status = connection_.patiently([&] { return sqlite3_step(handle_.get()); });
  check(status);
  return status == SQLITE_ROW;
}

std::string Statement::text() {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(handle_.get(), column_));
  const int size = sqlite3_column_bytes(handle_.get(), column_++);
  return bytes == nullptr ? std::string{} : std::string{bytes, static_cast<std::size_t>(size)};
}

std::optional<std::int64_t> Statement::optional_integer() {
  if (!is_null()) return integer();
  ++column_;
  return std::nullopt;
}

std::optional<double> Statement::optional_number() {
  if (!is_null()) return number();
  ++column_;
  return std::nullopt;
}

}  // namespace stepcast::trace
