#include "cmd/create.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/files/adapter_path.h"
#include "base/files/preset_files.h"
#include "base/files/regular_file.h"
#include "base/known_names.h"
#include "cmd/model_path.h"
#include "ipc/preset_toml.h"

namespace tgi {
namespace {

namespace fs = std::filesystem;

// What a Modelfile names relative to itself; a name that is no file there stays.
std::string beside(const std::string& value, const fs::path& folder) {
  if (value == "demo") return value;
  std::error_code error;
  fs::path path = value.starts_with("~/") ? fs::path(value) : folder / value;
  if (const char* home = std::getenv("HOME"); value.starts_with("~/") && home != nullptr) {
    path = fs::path(home) / value.substr(2);
  }
  return fs::exists(path, error) ? absolute_model(path.string()) : value;
}

// The base as the daemon takes it, under what it says itself where it is a preset.
Preset with_base(Preset preset, const ResolveOptions& options) {
  const std::string base = resolve_model(preset.from, options);
  std::error_code error;
  if (base != "demo" && !fs::exists(base, error)) {
    throw Error(Code::kNotFound,
                fmt::format("FROM {}: there is no such folder or file beside the Modelfile, and no "
                            "preset or model of that name; `tgi ls` lists those that are",
                            preset.from));
  }
  if (!is_preset_path(base)) {
    preset.from = base;
    return preset;
  }
  return over(read_preset(base), std::move(preset));
}

void settle_adapter(Preset& preset, const ResolveOptions& options) {
  if (preset.adapter.empty()) return;
  preset.adapter = resolve_model(preset.adapter, options);
  if (may_hold_adapter(preset.adapter)) return;
  throw Error(Code::kInvalidArgument,
              fmt::format("ADAPTER {}: expected a folder with adapter_config.json, or a GGUF file; "
                          "there is none",
                          preset.adapter));
}

// What drafts for the model.
void settle_drafter(Preset& preset, const ResolveOptions& options) {
  const bool is_folder = !preset.speculator.empty() && preset.speculator != kOwnLayer;
  if (is_folder) preset.speculator = resolve_model(preset.speculator, options);
  if (!preset.draft_model.empty()) preset.draft_model = resolve_files(preset.draft_model, options);
  std::error_code error;
  for (const auto& [instruction, value] :
       {std::pair{"SPECULATOR", is_folder ? preset.speculator : ""},
        std::pair{"DRAFT", preset.draft_model}}) {
    if (value.empty() || value == "demo" || fs::exists(value, error)) continue;
    throw Error(Code::kNotFound,
                fmt::format("{} {}: there is no such folder or file", instruction, value));
  }
}

}  // namespace

void add_create_flags(CLI::App& app, CreateFlags& flags) {
  app.footer(
      "The file is a Modelfile as ollama's: FROM, PARAMETER, SYSTEM, TEMPLATE (in Jinja), ADAPTER, "
      "MESSAGE and LICENSE, and of tgi's own SCHEMA (a JSON schema of the answers), SPECULATOR and "
      "DRAFT (what drafts for it); anything else in it is refused by name. A file that ends in "
      ".toml "
      "says the same as TOML: from, system, template, adapter, license, schema, speculator, draft, "
      "a table [parameters] and tables [[messages]] of role and content. FROM names a folder, a "
      "GGUF file, a model of the hub, which is downloaded when it is not here, a name of `tgi ls`, "
      "another preset, whose lines hold where this file says nothing else, or \"demo\". The preset "
      "is then a model by its name: `tgi run NAME`, `tgi load NAME`, `tgi serve NAME`. One of that "
      "name is replaced; a model that is loaded goes on as it was. Needs no daemon.");
  app.add_option("name", flags.name,
                 "of the preset: letters, digits, \".\", \"_\", \"-\" and \":\"")
      ->type_name("NAME")
      ->required();
  app.add_option("-f,--file", flags.file,
                 "the Modelfile, or a .toml; - reads a Modelfile from standard input; default: "
                 "Modelfile in this folder")
      ->type_name("FILE");
  app.add_flag("--offline", flags.offline, "download nothing");
}

int run_create(const CreateFlags& flags, const CommonFlags& common) {
  const std::string name = preset_name(flags.name);
  const bool is_piped = flags.file == "-";
  const std::string text = is_piped ? std::string(std::istreambuf_iterator<char>(std::cin), {})
                                    : read_regular_file(flags.file);
  const std::string shown = is_piped ? "standard input" : flags.file;
  const fs::path folder = is_piped ? fs::current_path() : fs::absolute(flags.file).parent_path();
  Session session(common);
  const ResolveOptions resolve{.offline = flags.offline, .cancel_fd = session.interrupt().fd()};
  Preset preset;
  try {
    const bool is_toml = fs::path(flags.file).extension() == ".toml";
    preset = is_toml ? preset_of_lines(ipc::lines_of_toml(text)) : parse_preset(text);
  } catch (const Error& error) {
    throw error.in(shown);
  }
  preset.from = beside(preset.from, folder);
  for (std::string* part : {&preset.adapter, &preset.speculator, &preset.draft_model}) {
    if (!part->empty()) *part = beside(*part, folder);
  }
  preset = with_base(std::move(preset), resolve);
  settle_adapter(preset, resolve);
  settle_drafter(preset, resolve);
  const bool was_there = find_preset(name).has_value();
  keep_preset(name, preset);
  session.out().write(fmt::format("{} {} (from {})\n", was_there ? "replaced" : "created", name,
                                  shown_model(preset.from)));
  return 0;
}

}  // namespace tgi
