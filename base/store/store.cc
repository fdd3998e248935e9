#include "base/store/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>

#include "base/error.h"
#include "base/files/paths.h"
#include "base/store/schema.h"

namespace tgi {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kModelColumns =
    "name, source, revision, commit_hash, format, path, bytes, installed_at, last_used_at";

InstalledModel model_of(const Statement& row) {
  return {.name = row.text(0),
          .source = row.text(1),
          .revision = row.text(2),
          .commit = row.text(3),
          .format = row.text(4),
          .path = row.text(5),
          .bytes = row.integer(6),
          .installed_at = row.integer(7),
          .last_used_at = row.integer(8)};
}

void read_files(const Database& database, InstalledModel& model) {
  Statement rows =
      database.prepare("SELECT name, bytes, hash FROM model_files WHERE model = ? ORDER BY name");
  rows.bind(1, model.name);
  while (rows.step()) {
    model.files.push_back({.name = rows.text(0), .bytes = rows.integer(1), .hash = rows.text(2)});
  }
}

bool is_writable(const fs::path& path, int mode) {
  return ::faccessat(AT_FDCWD, path.c_str(), mode, AT_EACCESS) == 0;
}

// The file, or where there is none the nearest folder above it that is there, may be written to.
bool may_write(const fs::path& path) {
  std::error_code error;
  if (fs::exists(path, error) && !is_writable(path, W_OK)) return false;
  fs::path folder = path.parent_path();
  while (!folder.empty() && folder != folder.root_path() && !fs::exists(folder, error)) {
    folder = folder.parent_path();
  }
  return is_writable(folder, W_OK | X_OK);  // SQLite writes files beside it
}

}  // namespace

std::string default_store_path() {
  const char* chosen = std::getenv("TGI_STORE");
  if (chosen != nullptr && *chosen != '\0') return chosen;
  return state_dir() + "/store.db";
}

Store::Store(Database database, ReadOnly read_only)
    : database_(std::move(database)), read_only_(read_only) {}

Store Store::open_to_read(const std::string& path, ReadOnly why) {
  std::error_code error;
  if (!fs::exists(path, error) || fs::file_size(path, error) == 0) {
    Database nothing = Database::in_memory(path);
    bring_up_schema(nothing);
    return {std::move(nothing), why};
  }
  Database database(path, Database::Access::kRead);
  if (check_schema(database) == newest_schema()) return {std::move(database), why};
  Database copy = database.copy_to_memory();
  bring_up_schema(copy);
  return {std::move(copy), why};
}

Store Store::open_to_write(const std::string& path) {
  make_private_dir(fs::path(path).parent_path().string());
  Database database(path, Database::Access::kWrite);
  const int64_t version = check_schema(database);  // before anything is changed
  database.use_write_ahead_log();
  // After a power failure the last few entries may be missing, the file is whole all the same.
  database.execute("PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON");
  if (version < newest_schema()) bring_up_schema(database);
  return {std::move(database), ReadOnly::kNo};
}

Store Store::open(const std::string& given) {
  const std::string path = fs::absolute(given).string();
  std::error_code error;
  if (fs::is_directory(path, error)) {
    throw Error(Code::kInvalidArgument,
                fmt::format("store {}: is a folder; TGI_STORE names a file", path));
  }
  if (!may_write(path)) return open_to_read(path, ReadOnly::kNoRight);
  try {
    return open_to_write(path);
  } catch (const Error& full) {
    // Who looks for what to remove has to see what there is.
    if (full.code() != Code::kOutOfMemory) throw;
    return open_to_read(path, ReadOnly::kDiskFull);
  }
}

void Store::require_writable() const {
  if (read_only_ == ReadOnly::kNo) return;
  if (read_only_ == ReadOnly::kDiskFull) {
    throw Error(Code::kOutOfMemory,
                fmt::format("store {}: the disk is full; free some space and try again", path()));
  }
  throw Error(Code::kInvalidArgument,
              fmt::format("store {}: the file or its folder can't be written; change their "
                          "permissions, or set TGI_STORE to another path",
                          path()));
}

void Store::put_model(const InstalledModel& model) {
  require_writable();
  Transaction transaction(database_);
  database_
      .prepare(fmt::format("INSERT INTO models ({}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) "
                           "ON CONFLICT (name) DO UPDATE SET source = excluded.source, "
                           "revision = excluded.revision, commit_hash = excluded.commit_hash, "
                           "format = excluded.format, path = excluded.path, "
                           "bytes = excluded.bytes, installed_at = excluded.installed_at, "
                           "last_used_at = max(last_used_at, excluded.last_used_at)",
                           kModelColumns))
      .bind(1, model.name)
      .bind(2, model.source)
      .bind(3, model.revision)
      .bind(4, model.commit)
      .bind(5, model.format)
      .bind(6, model.path)
      .bind(7, model.bytes)
      .bind(8, model.installed_at != 0 ? model.installed_at : int64_t{std::time(nullptr)})
      .bind(9, model.last_used_at)
      .run();
  database_.prepare("DELETE FROM model_files WHERE model = ?").bind(1, model.name).run();
  Statement insert =
      database_.prepare("INSERT INTO model_files (model, name, bytes, hash) VALUES (?, ?, ?, ?)");
  for (const InstalledFile& file : model.files) {
    insert.bind(1, model.name).bind(2, file.name).bind(3, file.bytes).bind(4, file.hash).run();
    insert.reset();
  }
  transaction.commit();
}

std::vector<InstalledModel> Store::models() const {
  std::vector<InstalledModel> out;
  Statement rows =
      database_.prepare(fmt::format("SELECT {} FROM models ORDER BY name", kModelColumns));
  while (rows.step()) out.push_back(model_of(rows));
  for (InstalledModel& model : out) read_files(database_, model);
  return out;
}

std::optional<InstalledModel> Store::find_model(std::string_view name) const {
  Statement rows =
      database_.prepare(fmt::format("SELECT {} FROM models WHERE name = ?", kModelColumns));
  rows.bind(1, name);
  if (!rows.step()) return std::nullopt;
  InstalledModel model = model_of(rows);
  read_files(database_, model);
  return model;
}

void Store::touch_model(std::string_view name) {
  if (is_read_only()) return;
  database_.prepare("UPDATE models SET last_used_at = ? WHERE name = ?")
      .bind(1, int64_t{std::time(nullptr)})
      .bind(2, name)
      .run();
}

bool Store::remove_model(std::string_view name) {
  require_writable();
  database_.prepare("DELETE FROM models WHERE name = ?").bind(1, name).run();
  return database_.num_changed() > 0;
}

}  // namespace tgi
