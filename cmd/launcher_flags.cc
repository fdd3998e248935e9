#include "cmd/launcher_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "cmd/launcher_rows.h"

namespace tgi {
namespace {

// The table of the page has | between its cells.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string flag_cell(const LauncherRow& row) {
  if (row.is_variable()) return fmt::format("`{}`", row.flag);
  std::string out = "`";
  if (!row.short_name.empty()) out += fmt::format("-{}`, `", row.short_name);
  out += fmt::format("--{}", row.flag);
  if (!row.is_switch()) out += fmt::format(" {}", row.value_name);
  return out + "`";
}

// The first of those that are taken; the others are other ways to write it.
std::string_view fixed_value(const LauncherRow& row) {
  return row.fixed.substr(0, row.fixed.find(' '));
}

std::string use_cell(const LauncherRow& row) {
  if (row.env == EnvUse::kUnread && row.is_variable()) return "not read";
  if (row.use == FlagUse::kSets) return "taken";
  if (row.use == FlagUse::kRefused) return row.is_variable() ? "a warning" : "refused";
  if (row.is_switch()) return "taken: is so anyway";
  return fmt::format("only `{}` taken", fixed_value(row));
}

bool can_be_refused(const LauncherRow& row) {
  return row.use == FlagUse::kRefused || (row.use == FlagUse::kFixed && !row.is_switch());
}

std::string variable_cell(const LauncherRow& row) {
  switch (row.env) {
    case EnvUse::kRead:
      return can_be_refused(row) ? "stops the start" : "read";
    case EnvUse::kIfAddress:
      return "read when an IP address";
    case EnvUse::kWarns:
      return can_be_refused(row) ? "a warning" : "read";
    case EnvUse::kUnread:
      return "not read";
    case EnvUse::kNone:
      return "none";
  }
  return {};
}

std::string text_cell(const LauncherRow& row) {
  const bool has_advice = can_be_refused(row) && !row.instead.empty();
  return cell(has_advice ? fmt::format("{}; {}", row.text, row.instead) : std::string(row.text));
}

constexpr std::string_view kPageHead =
    R"(# Flags of TGI and LoRAX in `tgi serve`

Every flag and environment variable of the launchers and routers of text-generation-inference (3.3.6) and LoRAX, and what `tgi
serve` makes of it. Nothing is ignored silently. The page is written from the table that the program works by (`cmd/launcher_rows*.cc`);
what else is different is in [coming_from_tgi.md](coming_from_tgi.md).

- **A flag goes before its variable**, that before the section [serve] of the file of settings ([settings.md](settings.md)), that before
  the default. The variable of `--foo-bar` is `FOO_BAR`; an empty one counts as
  not set. A switch's variable is `true` or `false` (also 1, 0, yes, no, on, off).
- **Refused** flags end the program with the reason and what to use instead. A refused **variable** ends it too when clients would get
  something else than was asked for; otherwise it gives a warning. Variables that other programs use as well, and on
  which nothing here depends, are not read.
- What goes to the daemon is marked with tgid's flag. A daemon that already runs keeps its own settings until `tgi stop`.
- `--port`, `--hostname`: `--http [HOST]:PORT` says both at once, goes before both variables and excludes both flags.
- **Without a host** the server listens on 127.0.0.1 only; with an API key on all addresses, as TGI does. Both an open
  address without a key and all addresses by default are said in a warning.
)";

}  // namespace

std::span<const LauncherGroup> launcher_groups() {
  constexpr std::string_view kTgi = "Options of TGI's launcher";
  static const auto kGroups = std::to_array<LauncherGroup>({
      {"`tgi serve` itself",
       "With MODEL, `--http`, `--socket` and `--no-start` (`tgi serve --help`).", "Options",
       serve_rows()},
      {"TGI's launcher", "", kTgi, tgi_launcher_rows()},
      {"TGI's router alone",
       "Its other flags are the launcher's. For the command `print-schema`: GET "
       "/api-doc/openapi.json.",
       kTgi, tgi_router_rows()},
      {"LoRAX's launcher and router",
       "Flags that TGI has too mean what they mean there, with TGI's defaults: "
       "max-concurrent-requests is 128, where LoRAX has 1024.",
       kTgi, lorax_rows()},
      {"TGI's llama.cpp launcher", "Its other flags are TGI's.", kTgi, llamacpp_rows()},
      {"Variables without a flag", "", "", variable_rows()},
  });
  return kGroups;
}

std::string launcher_variable(std::string_view flag) {
  std::string name = ascii_upper(flag);
  std::ranges::replace(name, '-', '_');
  return name;
}

std::string launcher_refusal(const LauncherRow& row) {
  const std::string why = fmt::format("{}; {}", row.text, row.instead);
  if (row.use != FlagUse::kFixed) return why;
  return fmt::format("only {} is taken: {}", fixed_value(row), why);
}

std::string launcher_flags_page() {
  std::string page(kPageHead);
  for (const LauncherGroup& group : launcher_groups()) {
    page += fmt::format("\n## {}\n", group.title);
    if (!group.text.empty()) page += fmt::format("{}\n\n", group.text);
    const bool are_variables = group.rows.front().is_variable();
    page += are_variables ? "| variable | here | what it does, or why not |\n|---|---|---|\n"
                          : "| flag | here | what it does, or why not | its variable |\n"
                            "|---|---|---|---|\n";
    for (const LauncherRow& row : group.rows) {
      page += fmt::format("| {} | {} | {} |", flag_cell(row), use_cell(row), text_cell(row));
      page += are_variables ? "\n" : fmt::format(" {} |\n", variable_cell(row));
    }
  }
  return page;
}

}  // namespace tgi
