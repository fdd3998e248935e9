#include "ipc/daemon_settings.h"

#include <fmt/format.h>

#include <array>
#include <cctype>

#include "base/error.h"
#include "base/log.h"
#include "ipc/duration.h"
#include "ipc/setting_rows.h"

namespace tgi::ipc {
namespace {

using OwnSetting = Setting<DaemonSettings>;

// Before the settings of a model on the page of the manual, and after them.
constexpr SettingFacts kModel{
    .name = "model",
    .value_name = "[NAME=]MODEL",
    .help =
        "Hugging Face folder to load at start, or \"demo\" for the toy model inside the "
        "executable; more than once: several models, each but the first under a name by which "
        "requests ask for it"};

constexpr SettingFacts kOnDemand{
    .name = "on-demand",
    .value_name = "NAME=MODEL",
    .help =
        "a model that is loaded when a request asks for it by this name, as are those that gave "
        "way to others; more than once: several"};
constexpr SettingFacts kKeepAlive{
    .name = "keep-alive",
    .value_name = "TIME",
    .help =
        "how long a model stays without a request, as 5m, 1h30m or a number of seconds; 0: no "
        "longer than its requests, -1: until it is unloaded or gives way. The next request that "
        "asks for it loads it again"};

constexpr auto kFirst = std::to_array<OwnSetting>({
    setting<&DaemonSettings::no_model>(
        {.name = "no-model", .help = "start without a model; `tgi load` brings one"}),
    setting<&DaemonSettings::load_installed>(
        {.name = "load-installed",
         .help =
             "models that tgi has downloaded or made are loaded when a request asks for them by "
             "the name that `tgi ls` shows; looked up when the daemon starts"}),
    setting<&DaemonSettings::max_models>(
        {.name = "max-models",
         .help = "models that are loaded at once, 0: as many as fit. Where one is asked for beyond "
                 "that, the one unused for longest gives way, once its requests have ended; of "
                 "--model those beyond it are loaded when they are asked for"}),
});

constexpr auto kLast = std::to_array<OwnSetting>({
    setting<&DaemonSettings::socket>(
        {.name = "socket", .value_name = "PATH", .help = "Unix socket to listen on"}),
    setting<&DaemonSettings::allow_group>(
        {.name = "allow-group",
         .value_name = "GROUP",
         .help = "members of this group may use the daemon, beside its own user and root: "
                 "generate, tokenize, see its status and metrics; a socket handed over by systemd "
                 "lets in whom its SocketGroup= and SocketMode= do"}),
    setting<&DaemonSettings::manage_group>(
        {.name = "manage-group",
         .value_name = "GROUP",
         .help = "members of this group may manage the daemon too, beside its own user and root: "
                 "load, unload, stop, quantize, inspect and check; where another group has the "
                 "socket they must be in both"}),
    setting<&DaemonSettings::num_intake_threads>(
        {.name = "intake-threads",
         .help = "threads that render chats and tokenise prompts",
         .low = 1}),
    setting<&DaemonSettings::drain_timeout>(
        {.name = "drain-timeout",
         .help = "on SIGTERM or `tgi stop`, running requests get so long to finish"}),
    setting<&DaemonSettings::stall_timeout>(
        {.name = "stall-timeout",
         .help = "when requests wait and no step has ended for so long, systemd's watchdog gets no "
                 "more signs of life; 0: it always does"}),
    setting<&DaemonSettings::log_level>({.name = "log-level",
                                         .value_name = "LEVEL",
                                         .help = "the lowest that is logged",
                                         .choices = kLogLevelNames}),
});

void add_model(DaemonSettings& settings, const std::string& text) {
  NamedModel model = split_named_model(text);
  const bool is_first = settings.models.empty();
  if (!is_first && model.name.empty()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("expected NAME=MODEL for each model but the first, got \"{}\"", text));
  }
  for (const NamedModel& other : settings.models) {
    if (!model.name.empty() && other.name == model.name) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("expected a name for each model, got {} twice", model.name));
    }
  }
  settings.models.push_back(std::move(model));
}

void add_on_demand(DaemonSettings& settings, const std::string& text) {
  if (text.empty()) return;  // as a variable or --print-config says that there is none
  NamedModel model = split_named_model(text);
  if (model.name.empty()) {
    throw Error(Code::kInvalidArgument, fmt::format("expected NAME=MODEL, got \"{}\"", text));
  }
  for (const std::vector<NamedModel>* names : {&settings.models, &settings.on_demand}) {
    for (const NamedModel& other : *names) {
      if (other.name == model.name) {
        throw Error(Code::kInvalidArgument,
                    fmt::format("expected a name for each model, got {} twice", model.name));
      }
    }
  }
  settings.on_demand.push_back(std::move(model));
}

std::string joined_models(const std::vector<NamedModel>& models) {
  std::string out;
  for (const auto& [name, model] : models) {
    out += fmt::format("{}{}{}{}", out.empty() ? "" : ", ", name, name.empty() ? "" : "=", model);
  }
  return out;
}

void set_keep_alive(DaemonSettings& settings, const std::string& text) {
  constexpr double kForEver = 1e9;
  const double seconds = parse_keep_alive(text);
  settings.keep_alive = std::chrono::milliseconds(
      seconds < 0 || seconds > kForEver ? -1 : static_cast<int64_t>(seconds * 1000));
}

std::string all_models(const DaemonSettings& settings) {
  return settings.models.empty() ? "demo" : joined_models(settings.models);
}

DaemonSetting setting_of(const OwnSetting& row) {
  return {row,
          [&row](DaemonSettings& settings, const std::string& text) { row.set(settings, text); },
          [&row](const DaemonSettings& settings) { return row.get(settings); }};
}

}  // namespace

std::span<const DaemonSetting> daemon_model_settings() {
  static const std::vector<DaemonSetting> kRows = [] {
    std::vector<DaemonSetting> rows;
    rows.push_back(
        {kModel, add_model, all_models, [](DaemonSettings& settings) { settings.models.clear(); }});
    rows.push_back(
        {kOnDemand, add_on_demand,
         [](const DaemonSettings& settings) { return joined_models(settings.on_demand); },
         [](DaemonSettings& settings) { settings.on_demand.clear(); }});
    for (const OwnSetting& row : kFirst) rows.push_back(setting_of(row));
    rows.push_back({kKeepAlive, set_keep_alive, [](const DaemonSettings& settings) {
                      return format_keep_alive(
                          std::chrono::duration<double>(settings.keep_alive).count());
                    }});
    return rows;
  }();
  return kRows;
}

std::span<const DaemonSetting> daemon_own_settings() {
  static const std::vector<DaemonSetting> kRows = [] {
    std::vector<DaemonSetting> rows;
    for (const OwnSetting& row : kLast) rows.push_back(setting_of(row));
    return rows;
  }();
  return kRows;
}

std::string environment_name(const SettingFacts& row) {
  std::string name = "TGI_" + field_name(row.name);
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

}  // namespace tgi::ipc
