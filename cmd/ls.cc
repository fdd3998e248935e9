#include "cmd/ls.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/models/model_list.h"
#include "cmd/ps.h"

namespace tgi {
namespace {

// "3 days ago"; "-" for never.
std::string format_age(int64_t time, int64_t now) {
  struct Unit {
    int64_t seconds;
    std::string_view name;
  };
  constexpr std::array<Unit, 4> kUnits = {
      {{86'400 * 30, "month"}, {86'400, "day"}, {3'600, "hour"}, {60, "minute"}}};
  if (time == 0) return "-";
  for (const Unit& unit : kUnits) {
    const int64_t count = (now - time) / unit.seconds;
    if (count >= 1) return fmt::format("{} {}{} ago", count, unit.name, count == 1 ? "" : "s");
  }
  return "just now";
}

std::string format_cell(const ListedModel& listed) {
  const std::string& format = listed.model.format;
  const bool is_ready = listed.state == ListedModel::State::kReady;
  if (is_ready && !format.empty()) return format;
  const std::string_view state = state_name(listed.state);
  return format.empty() ? std::string(state) : fmt::format("{} ({})", format, state);
}

using Rows = std::vector<std::vector<std::string>>;  // the heads first

// The third column to the right, the last as long as it is.
std::string text_of(const Rows& rows) {
  std::vector<size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (size_t i = 0; i + 1 < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += i == 2 ? fmt::format("{:>{}}  ", row[i], widths[i])
                     : fmt::format("{:<{}}  ", row[i], widths[i]);
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

Rows model_rows(const std::vector<ListedModel>& models) {
  Rows rows = {{"NAME", "FORMAT", "SIZE", "LAST USED"}};
  const int64_t now = std::time(nullptr);
  for (const ListedModel& listed : models) {
    const bool is_built_in = listed.state == ListedModel::State::kBuiltIn;
    rows.push_back({listed.model.name, format_cell(listed),
                    is_built_in ? "-" : format_bytes(listed.model.bytes),
                    format_age(listed.model.last_used_at, now)});
  }
  return rows;
}

Rows job_rows(const std::vector<JobRecord>& jobs) {
  Rows rows = {{"JOB", "STATE", "DONE", "BEGAN", "WHAT"}};
  const int64_t now = std::time(nullptr);
  for (const JobRecord& job : jobs) {
    const bool is_known = job.total > 0;
    const double share =
        is_known ? static_cast<double>(job.done) / static_cast<double>(job.total) : 0;
    const std::string& detail = job.message.empty() ? job.phase : job.message;
    rows.push_back({fmt::format("{} {}", job.kind, job.subject), job.state,
                    is_known ? fmt::format("{:.0f} %", 100 * share) : "-",
                    format_age(job.started_at, now), detail});
  }
  return rows;
}

ipc::OrderedJson to_json(const JobRecord& job) {
  return {{"id", job.id},
          {"kind", job.kind},
          {"subject", job.subject},
          {"state", job.state},
          {"phase", job.phase},
          {"done", job.done},
          {"total", job.total},
          {"message", job.message},
          {"started_at", job.started_at},
          {"finished_at",
           job.finished_at == 0 ? ipc::OrderedJson() : ipc::OrderedJson(job.finished_at)},
          {"pid", job.owner_pid}};
}

template <typename T>
std::string json_of(const std::vector<T>& items) {
  ipc::OrderedJson json = ipc::OrderedJson::array();
  for (const T& item : items) json.push_back(to_json(item));
  return json.dump(-1, ' ', false, ipc::OrderedJson::error_handler_t::replace) + "\n";
}

std::string list_jobs(const Store& store, bool as_json) {
  constexpr int64_t kShown = 20;
  const std::vector<JobRecord> jobs = store.jobs(as_json ? Store::kMaxJobs : kShown);
  return as_json ? json_of(jobs) : text_of(job_rows(jobs));
}

}  // namespace

void add_ls_flags(CLI::App& app, LsFlags& flags) {
  app.footer(
      "Lists the built-in model, presets of `tgi create`, what tgi has downloaded or made, what "
      "else lies in the Hugging "
      "Face cache, and GGUF files of ollama, LM Studio and llama.cpp, which stay theirs. A model "
      "is \"partial\" while something of it is missing, and \"missing\" when "
      "its folder is gone. Every name can be given to --model.");
  auto* json = app.add_flag("--json", flags.json, "write a JSON array with everything known");
  app.add_flag("-q,--quiet", flags.quiet, "write the names only, one a line")->excludes(json);
  app.add_flag("--jobs", flags.jobs,
               "list downloads and quantisations instead, newest first: those that run and those "
               "that have ended")
      ->excludes("--quiet");
}

int run_ls(const LsFlags& flags, const CommonFlags& common) {
  Session session(common);
  const Store store = Store::open();
  std::string out;
  if (flags.jobs) {
    out = list_jobs(store, flags.json);
  } else {
    const std::vector<ListedModel> models = list_models(store);
    if (flags.quiet) {
      for (const ListedModel& listed : models) out += listed.model.name + "\n";
    } else {
      out = flags.json ? json_of(models) : text_of(model_rows(models));
    }
  }
  session.out().write(out);
  return 0;
}

}  // namespace tgi
