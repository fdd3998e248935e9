#include "daemon/options.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/files/paths.h"
#include "base/files/preset_files.h"
#include "ipc/model_settings.h"

namespace tgi::daemon {
namespace {

// The row outlives the table.
OptionRow of_daemon(const ipc::DaemonSetting& row) {
  OptionRow out{row, row.set, row.get};
  if (row.reset) out.reset = row.reset;
  return out;
}

OptionRow of_model(const ipc::ModelSetting& row) {
  return {row, [&row](Options& options, const std::string& text) { row.set(options.model, text); },
          [&row](const Options& options) { return row.get(options.model); }};
}

std::vector<OptionRow> make_table() {
  std::vector<OptionRow> rows;
  for (const auto& row : ipc::daemon_model_settings()) rows.push_back(of_daemon(row));
  for (const ipc::ModelSetting& row : ipc::model_settings()) rows.push_back(of_model(row));
  for (const auto& row : ipc::daemon_own_settings()) rows.push_back(of_daemon(row));
  return rows;
}

const OptionRow* find_row(std::string_view flag) {
  for (const OptionRow& row : option_table()) {
    if (row.name == flag) return &row;
  }
  return nullptr;
}

void check_names(const ipc::ConfigFile& file) {
  std::vector<std::string> names;
  for (const OptionRow& row : option_table()) names.emplace_back(row.name);
  ipc::check_config_names(file, ipc::kDaemonSection, names);
}

// "mario" of `tgi create`, unless a folder or a file here has that name.
void settle_preset_name(std::string& model) {
  std::error_code error;
  if (std::filesystem::exists(model, error)) return;
  if (const auto preset = find_preset(model)) model = *preset;
}

}  // namespace

std::span<const OptionRow> option_table() {
  static const std::vector<OptionRow> rows = make_table();
  return rows;
}

ResolvedOptions resolve_options(const std::vector<GivenFlag>& flags, const ipc::ConfigFile& file) {
  ResolvedOptions out;
  out.file = file.path;
  out.options.socket = own_socket_path();
  check_names(file);
  for (const OptionRow& row : option_table()) {
    Origin origin = Origin::kDefault;
    // Of a setting that may be given more than once the first one of an origin forgets those
    // before.
    const auto apply = [&](Origin from, const std::string& text, const std::string& where) {
      if (origin != from && row.reset) row.reset(out.options);
      origin = from;
      try {
        row.set(out.options, text);
      } catch (const Error& error) {
        const Error told = error.in(where);
        if (from != Origin::kFlag || told.code() != Code::kInvalidArgument) throw Error(told);
        throw FlagError(told.code(), told.what());
      }
    };
    if (const ipc::ConfigEntry* entry = file.find(ipc::kDaemonSection, row.name)) {
      ipc::check_config_entry(file, *entry, row, row.reset != nullptr);
      for (const std::string& text : entry->values) apply(Origin::kFile, text, file.place(*entry));
    }
    const std::string variable = ipc::environment_name(row);
    if (const char* text = std::getenv(variable.c_str()); text != nullptr && *text != '\0') {
      apply(Origin::kEnvironment, text, variable);
    }
    for (const GivenFlag& given : flags) {
      if (given.flag == row.name) apply(Origin::kFlag, given.value, "--" + given.flag);
    }
    out.origins.push_back(origin);
  }
  for (const GivenFlag& given : flags) TGI_CHECK(find_row(given.flag) != nullptr);
  for (ipc::NamedModel& each : out.options.models) settle_preset_name(each.model);
  for (ipc::NamedModel& each : out.options.on_demand) settle_preset_name(each.model);
  if (!out.options.models.empty()) {
    out.options.model.model = out.options.models.front().model;
    out.options.model.name = out.options.models.front().name;
  }
  return out;
}

std::string print_config(const ResolvedOptions& resolved) {
  std::string out;
  const auto rows = option_table();
  for (size_t i = 0; i < rows.size(); ++i) {
    const OptionRow& row = rows[i];
    std::string origin = "default";
    if (resolved.origins[i] == Origin::kFile) origin = resolved.file;
    if (resolved.origins[i] == Origin::kEnvironment) origin = ipc::environment_name(row);
    if (resolved.origins[i] == Origin::kFlag) origin = "--" + std::string(row.name);
    out += fmt::format("{:<20} = {:<28} ({})\n", row.name, row.get(resolved.options), origin);
  }
  return out;
}

}  // namespace tgi::daemon
