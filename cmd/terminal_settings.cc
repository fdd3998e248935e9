#include "cmd/terminal_settings.h"

#include <array>
#include <cstdlib>
#include <vector>

#include "base/error.h"
#include "base/known_names.h"
#include "ipc/daemon_settings.h"
#include "ipc/setting_rows.h"

namespace tgi {
namespace {

using ipc::setting;

constexpr auto kColorChoices = names("auto", "always", "never");
constexpr auto kContextChoices = names("stop", "slide");

constexpr auto kRows = std::to_array<TerminalSetting>({
    setting<&TerminalSettings::no_start>(
        {.name = "no-start", .help = "commands start no daemon when none is running"}),
    setting<&TerminalSettings::verbose>(
        {.name = "verbose",
         .help = "commands say more on stderr: what is done, tokens per second"}),
    setting<&TerminalSettings::color>(
        {.name = "color",
         .help = "of texts on the terminal; auto: where the output is one. NO_COLOR, CLICOLOR and "
                 "CLICOLOR_FORCE go before it",
         .choices = kColorChoices}),
    setting<&TerminalSettings::raw>(
        {.name = "raw", .help = "answers are written as they are, no markdown rendered"}),
    setting<&TerminalSettings::stats>(
        {.name = "stats", .help = "after each answer of a chat, how fast it came"}),
    setting<&TerminalSettings::context>(
        {.name = "context",
         .help = "of a chat that has filled the model's context: stop, or slide, by which the "
                 "oldest turns leave",
         .choices = kContextChoices}),
    setting<&TerminalSettings::no_save>(
        {.name = "no-save", .help = "chats are not kept for `tgi chat --resume`"}),
});

}  // namespace

std::span<const TerminalSetting> terminal_settings() {
  return kRows;
}

std::optional<std::string> process_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

TerminalSettings resolve_terminal_settings(const ipc::ConfigFile& file,
                                           const Environment& environment) {
  std::vector<std::string> names;
  for (const TerminalSetting& row : kRows) names.emplace_back(row.name);
  ipc::check_config_names(file, ipc::kTerminalSection, names);
  TerminalSettings out;
  for (const TerminalSetting& row : kRows) {
    const auto apply = [&](const std::string& text, const std::string& where) {
      try {
        row.set(out, text);
      } catch (const Error& error) {
        throw error.in(where);
      }
    };
    if (const ipc::ConfigEntry* entry = file.find(ipc::kTerminalSection, row.name)) {
      ipc::check_config_entry(file, *entry, row, false);
      apply(entry->values.front(), file.place(*entry));
    }
    const std::string variable = ipc::environment_name(row);
    const std::optional<std::string> text = environment(variable);
    if (text && !text->empty()) apply(*text, variable);
  }
  return out;
}

void apply_color(const TerminalSettings& settings) {
  if (settings.color == "auto") return;
  for (const char* name : {"NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"}) {
    if (process_environment(name)) return;
  }
  ::setenv(settings.color == "never" ? "NO_COLOR" : "CLICOLOR_FORCE", "1", 1);
}

}  // namespace tgi
