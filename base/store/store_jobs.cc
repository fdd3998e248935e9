// Jobs. One belongs to the process that began it; when that process is gone, the job is shown as
// interrupted without anybody having written so.
#include <fmt/format.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/store/store.h"

namespace tgi {
namespace {

// What tells a process from later ones with its number: the boot, and the time since then at which
// it began (proc(5): the 22nd field of stat; the 2nd, a name in brackets, may hold anything). ""
// when there is no such process.
std::string process_start(int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  if (!std::getline(file, line)) return "";
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return "";
  std::istringstream fields(line.substr(name_end + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  return fmt::format("{}/{}", boot, field);
}

}  // namespace

int64_t Store::begin_job(std::string_view kind, std::string_view subject, int64_t total) {
  require_writable();
  Transaction transaction(database_);
  database_
      .prepare(
          "INSERT INTO jobs (kind, subject, state, phase, done, total, message, started_at, "
          "finished_at, owner_pid, owner_start) "
          "VALUES (?, ?, 'running', '', 0, ?, '', ?, 0, ?, ?)")
      .bind(1, kind)
      .bind(2, subject)
      .bind(3, total)
      .bind(4, int64_t{std::time(nullptr)})
      .bind(5, int64_t{::getpid()})
      .bind(6, process_start(::getpid()))
      .run();
  const int64_t id = database_.last_insert_id();
  database_.prepare("DELETE FROM jobs WHERE id <= ? AND finished_at > 0")
      .bind(1, id - kMaxJobs)
      .run();
  transaction.commit();
  return id;
}

void Store::update_job(int64_t id, std::string_view phase, int64_t done, int64_t total) {
  require_writable();
  database_
      .prepare("UPDATE jobs SET phase = ?, done = ?, total = ? WHERE id = ? AND state = 'running'")
      .bind(1, phase)
      .bind(2, done)
      .bind(3, total)
      .bind(4, id)
      .run();
}

void Store::end_job(int64_t id, std::string_view state, std::string_view message) {
  require_writable();
  database_.prepare("UPDATE jobs SET state = ?, message = ?, finished_at = ? WHERE id = ?")
      .bind(1, state)
      .bind(2, message)
      .bind(3, int64_t{std::time(nullptr)})
      .bind(4, id)
      .run();
  if (database_.num_changed() == 0) {
    throw Error(Code::kInternal, fmt::format("store {}: there is no job {}", path(), id));
  }
}

std::vector<JobRecord> Store::jobs(int64_t limit) const {
  std::vector<JobRecord> out;
  Statement rows = database_.prepare(
      "SELECT id, kind, subject, state, phase, done, total, message, started_at, finished_at, "
      "owner_pid, owner_start FROM jobs ORDER BY id DESC LIMIT ?");
  rows.bind(1, limit);
  while (rows.step()) {
    JobRecord job{.id = rows.integer(0),
                  .kind = rows.text(1),
                  .subject = rows.text(2),
                  .state = rows.text(3),
                  .phase = rows.text(4),
                  .done = rows.integer(5),
                  .total = rows.integer(6),
                  .message = rows.text(7),
                  .started_at = rows.integer(8),
                  .finished_at = rows.integer(9),
                  .owner_pid = rows.integer(10)};
    if (job.state == "running" && process_start(job.owner_pid) != rows.text(11)) {
      job.state = "interrupted";
      job.message = fmt::format("its process {} is gone", job.owner_pid);
    }
    out.push_back(std::move(job));
  }
  return out;
}

}  // namespace tgi
