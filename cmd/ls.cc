#include "cmd/ls.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
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

std::string text_of(const std::vector<ListedModel>& models) {
  std::vector<std::array<std::string, 4>> rows = {{"NAME", "FORMAT", "SIZE", "LAST USED"}};
  const int64_t now = std::time(nullptr);
  for (const ListedModel& listed : models) {
    const bool is_built_in = listed.state == ListedModel::State::kBuiltIn;
    rows.push_back({listed.model.name, format_cell(listed),
                    is_built_in ? "-" : format_bytes(listed.model.bytes),
                    format_age(listed.model.last_used_at, now)});
  }
  std::array<size_t, 4> widths{};
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    out += fmt::format("{:<{}}  {:<{}}  {:>{}}  {}\n", row[0], widths[0], row[1], widths[1], row[2],
                       widths[2], row[3]);
  }
  return out;
}

}  // namespace

void add_ls_flags(CLI::App& app, LsFlags& flags) {
  app.footer(
      "Lists the built-in model, what tgi has downloaded or made, and what else lies in the "
      "Hugging "
      "Face cache. A model is \"partial\" while something of it is missing, and \"missing\" when "
      "its folder is gone. Every name can be given to --model.");
  auto* json = app.add_flag("--json", flags.json, "write a JSON array with everything known");
  app.add_flag("-q,--quiet", flags.quiet, "write the names only, one a line")->excludes(json);
}

int run_ls(const LsFlags& flags, const CommonFlags& common) {
  Session session(common);
  const std::vector<ListedModel> models = list_models(Store::open());
  std::string out;
  if (flags.json) {
    ipc::OrderedJson json = ipc::OrderedJson::array();
    for (const ListedModel& listed : models) json.push_back(to_json(listed));
    out = json.dump(-1, ' ', false, ipc::OrderedJson::error_handler_t::replace) + "\n";
  } else if (flags.quiet) {
    for (const ListedModel& listed : models) out += listed.model.name + "\n";
  } else {
    out = text_of(models);
  }
  session.out().write(out);
  return 0;
}

}  // namespace tgi
