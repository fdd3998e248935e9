#include "base/files/preset_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include "base/error.h"
#include "base/files/new_file.h"
#include "base/files/ollama_store.h"
#include "base/files/paths.h"
#include "base/files/regular_file.h"
#include "base/known_names.h"

namespace tgi {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxNameBytes = 128;

bool may_be_in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-' || c == ':';
}

std::string_view without_latest(std::string_view name) {
  constexpr std::string_view kLatest = ":latest";
  if (name.ends_with(kLatest)) name.remove_suffix(kLatest.size());
  return name;
}

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes && name != "demo" && name.front() != '.' &&
         name.front() != '-' && std::ranges::all_of(name, may_be_in_name);
}

void require_place(const std::string& path,
                   std::string_view instruction,
                   const std::string& value) {
  if (value.empty() || value == "demo" || value.starts_with('/')) return;
  throw Error(
      Code::kInvalidArgument,
      fmt::format("{}: {} {}: expected an absolute path; `tgi create NAME -f {}` finds what "
                  "the file names and keeps it so",
                  path, instruction, value, path));
}

}  // namespace

bool is_preset_path(std::string_view path) {
  return path.ends_with(kPresetEnding) || is_ollama_manifest(std::string(path));
}

std::string presets_dir() {
  return state_dir() + "/presets";
}

std::string preset_name(std::string_view name) {
  const std::string_view short_name = without_latest(name);
  if (is_name(short_name)) return std::string(short_name);
  throw Error(
      Code::kInvalidArgument,
      fmt::format(
          "expected a name of letters, digits, \".\", \"_\", \"-\" and \":\", at most {} of "
          "them, other than demo, got \"{}\"",
          kMaxNameBytes, name.substr(0, 200)));
}

std::string preset_path(const std::string& name) {
  return fmt::format("{}/{}{}", presets_dir(), name, kPresetEnding);
}

std::optional<std::string> find_preset(std::string_view name) {
  const std::string_view short_name = without_latest(name);
  if (!is_name(short_name)) return std::nullopt;
  std::string path = preset_path(std::string(short_name));
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return std::nullopt;
  return path;
}

std::string name_of_preset(const std::string& path) {
  if (is_ollama_manifest(path)) return ollama_name(path);
  const fs::path file(path);
  if (!is_preset_path(path) || file.parent_path() != presets_dir()) return "";
  return file.stem().string();
}

std::vector<StoredPreset> list_presets() {
  std::vector<StoredPreset> out;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(presets_dir(), error)) {
    const std::string path = entry.path().string();
    const std::string name = entry.path().stem().string();
    struct stat facts {};
    if (!is_preset_path(path) || !is_name(name) || ::stat(path.c_str(), &facts) != 0) continue;
    out.push_back({name, path, facts.st_size, facts.st_mtime});
  }
  std::ranges::sort(out, {}, &StoredPreset::name);
  return out;
}

Preset read_preset(const std::string& path) {
  if (is_ollama_manifest(path)) return read_ollama_model(path);
  const std::string text = read_regular_file(path);
  Preset out;
  try {
    out = parse_preset(text);
  } catch (const Error& error) {
    throw error.in(path);
  }
  require_place(path, "FROM", out.from);
  require_place(path, "ADAPTER", out.adapter);
  require_place(path, "DRAFT", out.draft_model);
  if (out.speculator != kOwnLayer) require_place(path, "SPECULATOR", out.speculator);
  return out;
}

void keep_preset(const std::string& name, const Preset& preset) {
  const std::string text = to_modelfile(preset);
  (void)parse_preset(text);  // what can't be read again is not kept
  make_state_dir();
  NewFile file(preset_path(name));
  file.append(std::as_bytes(std::span(text)));
  file.commit_over();
}

bool remove_preset(const std::string& name) {
  std::error_code error;
  const std::string path = preset_path(name);
  const bool was_there = fs::remove(path, error);
  if (error) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: can't be removed: {}", path, error.message()));
  }
  return was_there;
}

}  // namespace tgi
