// SQLite as RAII: a connection, a statement, a transaction. The only file that calls sqlite3_*; it
// knows nothing of the tables. An object belongs to one thread; several connections to one file, in
// any processes, are what SQLite is made for.
//
// Errors name the file, and what to do where it can't be read: kInvalidArgument (damaged, no
// database, no permission), kOutOfMemory (disk full), kOverloaded (locked by another process for
// longer than kBusyTimeout).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace tgi {

inline constexpr std::chrono::milliseconds kBusyTimeout{10'000};

// How to get a store out of the way; the end of every message about one that can't be used.
std::string way_out_of(const std::string& path);

class Statement {
 public:
  // Parameters are numbered from 1. Text is copied.
  Statement& bind(int index, int64_t value);
  Statement& bind(int index, double value);
  Statement& bind(int index, std::string_view value);

  // False at the end of the rows. Throws what the class comment lists.
  bool step();
  void run();    // to the end
  void reset();  // to be bound and run again

  // Values of the row that step came to; columns are numbered from 0.
  int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };

  Statement(sqlite3* database, const std::string* path, std::string_view sql);
  void check(int result) const;

  sqlite3* database_;
  const std::string* path_;  // of the database, which outlives the statement
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class Database {
 public:
  enum class Access { kWrite, kRead };

  // kWrite creates the file, for its user only, when it is not there. Nothing is read yet.
  Database(std::string path, Access access);
  // One in memory, empty: what is written to it is lost with it. `path` is for messages.
  static Database in_memory(std::string path);

  Statement prepare(std::string_view sql) const;
  void execute(const char* sql) const;  // one or several statements, without parameters
  int64_t pragma(std::string_view name) const;
  int64_t last_insert_id() const;
  int64_t num_changed() const;  // rows, by the last statement

  // Copies it into a database in memory that may be written to.
  Database copy_to_memory() const;

  // Write-ahead logging: readers go on while one writes. Waits for others as long as kBusyTimeout.
  void use_write_ahead_log() const;

  const std::string& path() const { return *path_; }

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };

  Database() = default;
  void open(const std::string& name, int flags);

  std::unique_ptr<std::string> path_;  // on the heap: statements point to it
  std::unique_ptr<sqlite3, Close> database_;
};

// Takes the right to write at once. Undone when it is not committed.
class Transaction {
 public:
  explicit Transaction(const Database& database);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  void commit();

 private:
  const Database& database_;
  bool is_open_ = true;
};

}  // namespace tgi
