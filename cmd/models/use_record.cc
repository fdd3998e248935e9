#include "cmd/models/use_record.h"

#include <ctime>
#include <exception>
#include <filesystem>

#include "base/files/preset_files.h"
#include "cmd/download/fetch_model.h"
#include "cmd/model_path.h"
#include "cmd/models/model_list.h"

namespace tgi {
namespace {

// Of a preset, or of a folder or a file of the user's; another's name is empty.
InstalledModel record_of(const std::string& path) {
  InstalledModel out{.name = path, .path = path};
  if (is_preset_path(path)) {
    out.source = kPresetUse;
    return out;
  }
  // One of the hub, of ollama and the like has a readable name, and is listed as what it is.
  if (!path.starts_with('/') || shown_model(path) != path) return {};
  const bool is_file = download::is_gguf_file(path);
  out.source = is_file ? "file" : "folder";
  out.format = format_of_folder(path);
  std::error_code error;
  if (is_file) out.bytes = static_cast<int64_t>(std::filesystem::file_size(path, error));
  for (const InstalledFile& file : files_of_folder(path)) out.bytes += file.bytes;
  return out;
}

}  // namespace

void record_use(const std::string& path) {
  try {
    Store store = Store::open();
    if (store.is_read_only()) return;
    if (store.find_model(path)) return store.touch_model(path);
    InstalledModel record = record_of(path);
    if (record.name.empty()) return;
    record.last_used_at = std::time(nullptr);
    store.put_model(record);
  } catch (const std::exception&) {
    // What is wrong with the folder, or with the store, `tgi ls` and `tgi doctor` say.
  }
}

}  // namespace tgi
