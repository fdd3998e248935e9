#include "base/store/database.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/unique_fd.h"

namespace tgi {
namespace {

namespace fs = std::filesystem;

Error full_disk(const std::string& path) {
  return {Code::kOutOfMemory,
          fmt::format("store {}: the disk is full; free some space and try again", path)};
}

// A file beside the store that can't grow is an I/O error to SQLite, whose cause it does not keep.
bool is_disk_full(const std::string& path) {
  constexpr uintmax_t kLeast = 64 << 10;  // the least that a log and its index take
  std::error_code error;
  const fs::space_info space = fs::space(fs::path(path).parent_path(), error);
  return !error && space.available < kLeast;
}

Error error_of(int result, const std::string& path, const std::string& detail) {
  switch (result & 0xff) {
    case SQLITE_NOTADB:
      return {Code::kInvalidArgument,
              fmt::format("store {}: not a database; {}", path, way_out_of(path))};
    case SQLITE_CORRUPT:
    case SQLITE_FORMAT:
    case SQLITE_ERROR:       // a table that is not there or has other columns: a header is damaged
    case SQLITE_CONSTRAINT:  // an index that does not fit its table
      return {Code::kInvalidArgument,
              fmt::format("store {}: damaged ({}); {}", path, detail, way_out_of(path))};
    case SQLITE_FULL:
      return full_disk(path);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {Code::kOverloaded, fmt::format("store {}: another process has held it for more than "
                                             "{} s; try again, or end that process",
                                             path, kBusyTimeout.count() / 1000)};
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return {Code::kInvalidArgument,
              fmt::format("store {}: {}; check the permissions of the file and its folder, or set "
                          "TGI_STORE to another path",
                          path, detail)};
    case SQLITE_IOERR:
      if (is_disk_full(path)) return full_disk(path);
      return {Code::kInvalidArgument,
              fmt::format("store {}: {}; check the disk, or set TGI_STORE to another path", path,
                          detail)};
    case SQLITE_NOMEM:
      return {Code::kOutOfMemory, fmt::format("store {}: no memory", path)};
    default:
      return {Code::kInternal, fmt::format("store {}: {} (SQLite {})", path, detail, result)};
  }
}

// SQLite would make the file readable for all; the files it makes beside it take on its mode.
void create_private(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (fd) return;
  if (errno == ENOSPC || errno == EDQUOT) throw Error(full_disk(path));
  throw Error(Code::kInvalidArgument,
              fmt::format("store {}: {}; set TGI_STORE to another path to keep it elsewhere", path,
                          std::strerror(errno)));
}

// SQLite's names of files are URIs here.
std::string uri_of(const std::string& path, std::string_view query) {
  std::string out = "file:";
  for (const char c : fs::absolute(path).string()) {
    const bool is_special = c == '?' || c == '#' || c == '%';
    out += is_special ? fmt::format("%{:02x}", static_cast<unsigned char>(c)) : std::string(1, c);
  }
  return fmt::format("{}{}", out, query);
}

// Where nothing may be written a database with a write-ahead log can only be read when nobody
// writes to it, which is so when the log is empty: whoever closes last empties it.
bool has_log(const std::string& path) {
  std::error_code error;
  const auto size = fs::file_size(path + "-wal", error);
  return !error && size > 0;
}

}  // namespace

std::string way_out_of(const std::string& path) {
  return fmt::format(
      "to start a new one: mv '{0}' '{0}.old' (downloaded models stay where they are and are found "
      "again; the history of jobs and benchmarks stays in the old file)",
      path);
}

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

Statement::Statement(sqlite3* database, const std::string* path, std::string_view sql)
    : database_(database), path_(path) {
  sqlite3_stmt* statement = nullptr;
  check(
      sqlite3_prepare_v2(database, sql.data(), static_cast<int>(sql.size()), &statement, nullptr));
  statement_.reset(statement);
}

void Statement::check(int result) const {
  if (result == SQLITE_OK || result == SQLITE_ROW || result == SQLITE_DONE) return;
  throw error_of(result, *path_, sqlite3_errmsg(database_));
}

Statement& Statement::bind(int index, int64_t value) {
  check(sqlite3_bind_int64(statement_.get(), index, value));
  return *this;
}

Statement& Statement::bind(int index, double value) {
  check(sqlite3_bind_double(statement_.get(), index, value));
  return *this;
}

Statement& Statement::bind(int index, std::string_view value) {
  check(sqlite3_bind_text64(statement_.get(), index, value.data() == nullptr ? "" : value.data(),
                            value.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}

bool Statement::step() {
  const int result = sqlite3_step(statement_.get());
  check(result);
  return result == SQLITE_ROW;
}

void Statement::run() {
  while (step()) {
  }
}

void Statement::reset() {
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
}

int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

double Statement::real(int column) const {
  return sqlite3_column_double(statement_.get(), column);
}

std::string Statement::text(int column) const {
  const void* text = sqlite3_column_blob(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return text == nullptr ? std::string()
                         : std::string(static_cast<const char*>(text), static_cast<size_t>(size));
}

void Database::Close::operator()(sqlite3* database) const {
  sqlite3_close_v2(database);
}

Database::Database(std::string path, Access access)
    : path_(std::make_unique<std::string>(std::move(path))) {
  if (access == Access::kWrite) {
    create_private(*path_);
    open(uri_of(*path_, "?mode=rw"), SQLITE_OPEN_READWRITE);
  } else {
    open(uri_of(*path_, has_log(*path_) ? "?mode=ro" : "?mode=ro&immutable=1"),
         SQLITE_OPEN_READONLY);
  }
}

Database Database::in_memory(std::string path) {
  Database out;
  out.path_ = std::make_unique<std::string>(std::move(path));
  out.open(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  return out;
}

void Database::open(const std::string& name, int flags) {
  sqlite3* database = nullptr;
  const int result = sqlite3_open_v2(name.c_str(), &database,
                                     flags | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
  database_.reset(database);
  if (result != SQLITE_OK) {
    throw error_of(result, *path_,
                   database != nullptr ? sqlite3_errmsg(database) : sqlite3_errstr(result));
  }
  sqlite3_extended_result_codes(database, 1);
  sqlite3_busy_timeout(database, static_cast<int>(kBusyTimeout.count()));
  // A file that somebody made up may hold a schema that calls functions: none of ours does.
  sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
}

Statement Database::prepare(std::string_view sql) const {
  return {database_.get(), path_.get(), sql};
}

void Database::execute(const char* sql) const {
  const int result = sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr);
  if (result != SQLITE_OK) throw error_of(result, *path_, sqlite3_errmsg(database_.get()));
}

int64_t Database::pragma(std::string_view name) const {
  Statement statement = prepare(fmt::format("PRAGMA {}", name));
  return statement.step() ? statement.integer(0) : 0;
}

int64_t Database::last_insert_id() const {
  return sqlite3_last_insert_rowid(database_.get());
}

int64_t Database::num_changed() const {
  return sqlite3_changes64(database_.get());
}

Database Database::copy_to_memory() const {
  Database out = in_memory(*path_);
  sqlite3_backup* backup =
      sqlite3_backup_init(out.database_.get(), "main", database_.get(), "main");
  if (backup == nullptr) {
    throw error_of(sqlite3_errcode(out.database_.get()), *path_,
                   sqlite3_errmsg(out.database_.get()));
  }
  const int result = sqlite3_backup_step(backup, -1);
  sqlite3_backup_finish(backup);
  if (result != SQLITE_DONE) throw error_of(result, *path_, sqlite3_errstr(result));
  return out;
}

void Database::use_write_ahead_log() const {
  // While others are at the same, SQLite answers "busy" at once instead of waiting.
  const auto deadline = std::chrono::steady_clock::now() + kBusyTimeout;
  for (;;) {
    const int result =
        sqlite3_exec(database_.get(), "PRAGMA journal_mode = WAL", nullptr, nullptr, nullptr);
    if (result == SQLITE_OK) return;
    const bool is_busy = (result & 0xff) == SQLITE_BUSY;
    if (!is_busy || std::chrono::steady_clock::now() > deadline) {
      throw error_of(result, *path_, sqlite3_errmsg(database_.get()));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

Transaction::Transaction(const Database& database) : database_(database) {
  database.execute("BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
  if (!is_open_) return;
  try {
    database_.execute("ROLLBACK");
  } catch (const Error&) {
    // SQLite has rolled back by itself, as it does when the disk is full.
  }
}

void Transaction::commit() {
  database_.execute("COMMIT");
  is_open_ = false;
}

}  // namespace tgi
