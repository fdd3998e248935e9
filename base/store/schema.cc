#include "base/store/schema.h"

#include <fmt/format.h>

#include <array>

#include "base/error.h"

namespace tgi {
namespace {

// In the header of the file, so that another program's database is never written to.
constexpr int64_t kApplicationId = 0x54474953;  // "TGIS"

constexpr std::array kSteps = {
    // 1: what is installed, what runs, what was measured. Times are seconds since 1970, UTC.
    R"(
CREATE TABLE models (
  name TEXT PRIMARY KEY NOT NULL,
  source TEXT NOT NULL,
  revision TEXT NOT NULL,
  commit_hash TEXT NOT NULL,
  format TEXT NOT NULL,
  path TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  installed_at INTEGER NOT NULL,
  last_used_at INTEGER NOT NULL
);
CREATE TABLE model_files (
  model TEXT NOT NULL REFERENCES models (name) ON DELETE CASCADE ON UPDATE CASCADE,
  name TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  hash TEXT NOT NULL,
  PRIMARY KEY (model, name)
) WITHOUT ROWID;
CREATE TABLE jobs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  state TEXT NOT NULL,
  phase TEXT NOT NULL,
  done INTEGER NOT NULL,
  total INTEGER NOT NULL,
  message TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  finished_at INTEGER NOT NULL,
  owner_pid INTEGER NOT NULL,
  owner_start TEXT NOT NULL
);
CREATE TABLE benchmarks (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  measured_at INTEGER NOT NULL,
  kind TEXT NOT NULL,
  model TEXT NOT NULL,
  backend TEXT NOT NULL,
  isa TEXT NOT NULL,
  dtype TEXT NOT NULL,
  settings TEXT NOT NULL,
  result TEXT NOT NULL,
  version TEXT NOT NULL
);
CREATE INDEX benchmarks_by_model ON benchmarks (model, id);
)",
};

}  // namespace

int64_t newest_schema() {
  return static_cast<int64_t>(kSteps.size());
}

int64_t check_schema(const Database& database) {
  // In one statement: another process may make the tables between two.
  Statement facts = database.prepare(
      "SELECT (SELECT user_version FROM pragma_user_version), "
      "(SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_master)");
  facts.step();
  const int64_t version = facts.integer(0);
  const int64_t application = facts.integer(1);
  const bool is_empty = facts.integer(2) == 0 && version == 0;
  if (application != kApplicationId && !is_empty) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("store {}: a database of another program; set TGI_STORE to another path",
                    database.path()));
  }
  if (version > newest_schema()) {
    throw Error(
        Code::kUnsupported,
        fmt::format("store {}: written by a newer tgi (version {} of its tables, this one "
                    "knows {}); use that tgi, or set TGI_STORE to another path, or {}",
                    database.path(), version, newest_schema(), way_out_of(database.path())));
  }
  return version;
}

void bring_up_schema(const Database& database) {
  Transaction transaction(database);
  const int64_t version = check_schema(database);  // another process may have been first
  for (auto step = static_cast<size_t>(version); step < kSteps.size(); ++step) {
    database.execute(kSteps[step]);
  }
  database.execute(fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}",
                               kApplicationId, newest_schema())
                       .c_str());
  transaction.commit();
}

}  // namespace tgi
