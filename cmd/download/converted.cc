#include "cmd/download/converted.h"

#include <fmt/format.h>

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <vector>

#include "base/files/paths.h"
#include "cmd/download/content_hash.h"
#include "cmd/download/disk.h"
#include "cmd/download/torch/convert.h"
#include "cmd/download/torch/torch_folder.h"

namespace tgi::download {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPathDigits = 16;
constexpr size_t kStateDigits = 24;  // as long as a commit together

// "gpt2-0123456789abcdef": the same for all states of a folder.
std::string path_key(const std::string& folder) {
  return sha256_of(fs::weakly_canonical(folder).string()).substr(0, kPathDigits);
}

// Names the state of the files that a conversion is made from. Throws for a file that can't be
// looked at.
std::string state_key(const std::string& folder) {
  const TorchFolder torch = find_torch_files(folder);
  std::string state;
  std::vector<std::string> of_modules;
  for (const std::string& module : torch.modules) {
    for (const std::string_view file : kModuleFiles) {
      const std::string name = fmt::format("{}/{}", module, file);
      if (exists(folder + "/" + name)) of_modules.push_back(name);
    }
  }
  for (const auto& names : {torch.files, torch.others, of_modules}) {
    for (const std::string& name : names) {
      struct stat about {};
      const std::string path = fmt::format("{}/{}", folder, name);
      if (::stat(path.c_str(), &about) != 0) throw disk_error("read", path, errno);
      state += fmt::format("{} {} {}.{}\n", name, about.st_size, about.st_mtim.tv_sec,
                           about.st_mtim.tv_nsec);
    }
  }
  return sha256_of(state).substr(0, kStateDigits);
}

std::string folder_name(std::string_view model_name) {
  std::string out;
  for (const char c : model_name) {
    out += c == '/' || c == ':' ? std::string("--") : std::string(1, c);
  }
  return out.substr(0, 150);
}

// Nobody can ask for them any more.
void remove_older_states(const std::string& converted) {
  const fs::path now(converted);
  const std::string key = now.filename().string().substr(0, kPathDigits);
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(now.parent_path(), error)) {
    const std::string name = entry.path().filename().string();
    std::error_code ignored;
    if (name.starts_with(key) && entry.path() != now) fs::remove_all(entry.path(), ignored);
  }
}

void convert(const FetchedModel& model,
             const std::string& to,
             FetchObserver& observer,
             const std::stop_token& stop) {
  observer.on_note(fmt::format(
      "{} has a torch checkpoint only; it is converted to safetensors in {}", model.name, to));
  make_folders(fs::path(to).parent_path().string());
  ConvertOptions options;
  options.on_progress = [&](const ConvertProgress&) {
    if (stop.stop_requested()) throw Error(Code::kCancelled, "the conversion was stopped");
  };
  const ConvertedModel converted = convert_torch_checkpoint(model.path, to, options);
  observer.on_note(
      fmt::format("converted {} tensors, {}", converted.num_tensors, format_size(converted.bytes)));
  if (model.source != "folder") return;
  if (converted_folder(model) != to) {
    std::error_code ignored;
    fs::remove_all(to, ignored);
    throw Error(
        Code::kInvalidArgument,
        fmt::format("{}: its files changed while they were converted; try again when nobody "
                    "writes them",
                    model.name));
  }
  // Who may not look into the source may not look into its copy.
  std::error_code ignored;
  fs::permissions(to, fs::status(model.path).permissions() | fs::perms::owner_all, ignored);
  remove_older_states(to);
}

}  // namespace

bool needs_conversion(const std::string& folder) {
  bool torch = false;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (is_safetensors(name)) return false;
    torch = torch || is_torch_checkpoint(name);
  }
  return torch;
}

std::string converted_folder(const FetchedModel& model) {
  const bool is_local = model.source == "folder";
  const std::string name = is_local ? fs::path(model.path).filename().string() : model.name;
  const std::string state = is_local ? path_key(model.path) + state_key(model.path) : model.commit;
  return fmt::format("{}/converted/{}/{}", tgi::cache_dir(), folder_name(name), state);
}

bool is_converted(const std::string& folder) {
  return exists(folder + "/config.json") || exists(folder + "/adapter_config.json");
}

void use_converted(FetchedModel& model,
                   const FetchRequest& request,
                   FetchObserver& observer,
                   std::stop_token stop) {
  if (!request.rules.include.empty() || !needs_conversion(model.path)) return;
  const std::string folder = converted_folder(model);
  if (!is_converted(folder)) convert(model, folder, observer, stop);
  model.path = folder;
}

}  // namespace tgi::download
