#include "cmd/settings_page.h"

#include <fmt/format.h>

#include "ipc/model_settings.h"

namespace tgi {
namespace {

constexpr std::string_view kHead = R"(# Settings of a model

Each is a flag of `tgid`, which holds for every model that the daemon loads. Those with a field are flags of `tgi load` too, and fields of
the request [`load`](protocol.md): they hold for that model, and where one is not said the daemon's holds. A number or a size (in bytes) is a
number there, a switch true or false, everything else a text; `"auto"` stands for what the program chooses. The environment variable of
`--foo-bar` is `TGI_FOO_BAR`, read by `tgid`. `tgid --print-config` shows all values; `tgid --help-all` has the settings of the daemon itself.

## The file

What shall hold always stands in `~/.config/tgi/config.toml` (`$XDG_CONFIG_HOME`, or `$TGI_CONFIG` names another file):
```
[daemon]                        # tgid, also where a command starts it: each of its flags
kv-cache-memory = "4GiB"
max-running = 32
on-demand = ["small=~/models/small"]
[serve]                         # tgi serve: the flags of docs/flags_from_tgi.md
port = 8080
[terminal]                      # tgi chat, generate and run
color = "never"                 # auto, always, never; also raw, stats, context, no-save, no-start, verbose
```
`tgi config set daemon.max-running 32`, `unset`, `get` and `path` write and read it, and leave comments where they are; `tgi config list` shows
every setting and where it comes from. **A flag goes before a variable, that before the file, that before the default.** A setting that is
not known, or a value that is not right, stops the program that reads it, and it says line and reason. A daemon that runs goes on as it
was started; after `tgi stop` the next one has what is in the file.

## The settings

This page is written from the table that the programs work by (`ipc/model_settings.h`).

| flag | what it is | it may be | default | field |
|---|---|---|---|---|
)";

std::string flag_cell(const ipc::ModelSetting& row) {
  return row.is_switch() ? fmt::format("`--{}`", row.name)
                         : fmt::format("`--{} {}`", row.name, row.value_name);
}

std::string default_cell(const ipc::ModelSetting& row) {
  const std::string value = row.get(ipc::ModelSettings());
  return value.empty() ? "none" : fmt::format("`{}`", value);
}

std::string field_cell(const ipc::ModelSetting& row) {
  if (!row.is_of_load()) return "";
  const bool is_of_one = row.scope == ipc::SettingScope::kModel;
  return fmt::format("`{}`{}", ipc::field_name(row.name),
                     is_of_one ? "; where it is not said, the default" : "");
}

}  // namespace

std::string settings_page() {
  std::string page(kHead);
  for (const ipc::ModelSetting& row : ipc::model_settings()) {
    page += fmt::format("| {} | {} | {} | {} | {} |\n", flag_cell(row), row.help,
                        ipc::allowed_values(row), default_cell(row), field_cell(row));
  }
  return page;
}

}  // namespace tgi
