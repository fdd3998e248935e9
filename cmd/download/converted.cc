#include "cmd/download/converted.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/paths.h"
#include "cmd/download/content_hash.h"
#include "cmd/download/disk.h"
#include "cmd/download/torch/convert.h"

namespace tgi::download {
namespace {

namespace fs = std::filesystem;

}  // namespace

bool needs_conversion(const FetchedModel& model) {
  bool torch = false;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(model.path, error)) {
    const std::string name = entry.path().filename().string();
    if (is_safetensors(name)) return false;
    torch = torch || is_torch_checkpoint(name);
  }
  return torch;
}

std::string converted_folder(const FetchedModel& model) {
  std::string name;
  for (const char c : model.name)
    name += c == '/' || c == ':' ? std::string("--") : std::string(1, c);
  // A folder has no commit: its path tells it from others of its name.
  const std::string commit =
      model.commit.empty() ? sha256_of(model.path).substr(0, 40) : model.commit;
  return fmt::format("{}/converted/{}/{}", tgi::cache_dir(), name.substr(0, 150), commit);
}

void use_converted(FetchedModel& model,
                   const FetchRequest& request,
                   FetchObserver& observer,
                   std::stop_token stop) {
  if (model.source == "folder" || !request.rules.include.empty() || !needs_conversion(model))
    return;
  const std::string folder = converted_folder(model);
  if (!exists(folder + "/config.json")) {
    observer.on_note(
        fmt::format("{} has a torch checkpoint only; it is converted to safetensors in {}",
                    model.name, folder));
    make_folders(fs::path(folder).parent_path().string());
    ConvertOptions options;
    options.on_progress = [&](const ConvertProgress&) {
      if (stop.stop_requested()) throw Error(Code::kCancelled, "the conversion was stopped");
    };
    const ConvertedModel converted = convert_torch_checkpoint(model.path, folder, options);
    observer.on_note(fmt::format("converted {} tensors, {}", converted.num_tensors,
                                 format_size(converted.bytes)));
  }
  model.path = folder;
}

}  // namespace tgi::download
