// sim/trace/sqlite_database.hpp — SQLite's handles as values that close themselves, and its status
// codes as our errors. Not for other folders.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <sqlite3.h>

namespace stepcast::trace {

// A URI by which SQLite reads a file as it lies: no lock, no journal, also where this user may not write. `log`: one is still to be merged.
std::string read_only_uri(const std::string& path, bool log);
// Whether a write-ahead log with something in it is beside the file.
bool has_log(const std::string& path);

class Connection {
 public:
  // Throws as store.hpp says.
  Connection(const std::string& path, bool may_create, std::chrono::milliseconds patience);

  [[nodiscard]] sqlite3* handle() const { return handle_.get(); }
  [[nodiscard]] const std::string& path() const { return path_; }
  void execute(const char* sql) const;
  [[nodiscard]] std::int64_t integer(const char* sql) const;  // the single value of a query
  // Calls until the answer is not "busy", or patience ends. SQLite's own waiting is not enough: where it fears
  // a deadlock (a change to write-ahead logging, a last connection that closes) it answers at once.
  template <class Call>
  int patiently(Call call) const {
    const auto end = std::chrono::steady_clock::now() + patience_;
    int status = call();
    while ((status & 0xff) == SQLITE_BUSY && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds{5});
      status = call();
    }
    return status;
  }
  // Throws what the status means to the user.
  [[noreturn]] void refuse(int status) const;

 private:
  struct Close {
    void operator()(sqlite3* db) const { sqlite3_close(db); }
  };
  std::string path_;
  std::chrono::milliseconds patience_;
  std::unique_ptr<sqlite3, Close> handle_;
};

// Rolls back unless committed. Starts as the writer at once, so that it never fails to become one.
class Transaction {
 public:
  explicit Transaction(const Connection& connection) : connection_{connection} { connection_.execute("BEGIN IMMEDIATE"); }
  ~Transaction() {
    if (!done_) sqlite3_exec(connection_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit() {
    connection_.execute("COMMIT");
    done_ = true;
  }

 private:
  const Connection& connection_;
  bool done_ = false;
};

// bind() fills the next parameter; run() executes and is ready for the next row of parameters;
// next() steps a query, column reads go from left to right. Text must outlive the step.
class Statement {
 public:
  Statement(const Connection& connection, const char* sql);

  Statement& bind(std::int64_t value);
  Statement& bind(double value);
  Statement& bind(const std::string& text);
  template <class T>
  Statement& bind(const std::optional<T>& value) {
    return value ? bind(*value) : bind_null();
  }
  Statement& bind(std::uint16_t value) { return bind(std::int64_t{value}); }
  Statement& bind_null();
  void run();

  bool next();
  [[nodiscard]] bool is_null() const { return sqlite3_column_type(handle_.get(), column_) == SQLITE_NULL; }
  std::int64_t integer() { return sqlite3_column_int64(handle_.get(), column_++); }
  double number() { return sqlite3_column_double(handle_.get(), column_++); }
  std::string text();
  std::optional<std::int64_t> optional_integer();
  std::optional<double> optional_number();

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  void check(int status) const;

  const Connection& connection_;
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
  int parameter_ = 0;
  int column_ = 0;
};

}  // namespace stepcast::trace
