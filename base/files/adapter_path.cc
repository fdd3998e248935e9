#include "base/files/adapter_path.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace tgi {
namespace {

namespace fs = std::filesystem;

bool is_gguf_file(const std::string& path) {
  std::array<char, 4> first{};
  std::ifstream file(path, std::ios::binary);
  file.read(first.data(), first.size());
  return file && std::string_view(first.data(), first.size()) == "GGUF";
}

bool is_model_weights(const fs::path& file) {
  const std::string name = file.filename().string();
  if (name.starts_with("adapter_model.")) return false;
  // Trainers leave other files with the ending .bin.
  return name.ends_with(".safetensors") || name.ends_with(".gguf") ||
         (name.starts_with("pytorch_model") && name.ends_with(".bin")) ||
         name.ends_with(".safetensors.index.json") || name.ends_with(".bin.index.json");
}

template <typename Predicate>
bool any_file(const std::string& folder, const Predicate& is_one) {
  std::error_code error;
  fs::directory_iterator file(folder, error);
  for (; !error && file != fs::directory_iterator(); file.increment(error)) {
    if (is_one(file->path())) return true;
  }
  return false;
}

}  // namespace

bool is_peft_folder(const std::string& path) {
  std::error_code error;
  if (!fs::exists(fs::path(path) / "adapter_config.json", error)) return false;
  return !fs::exists(fs::path(path) / "config.json", error) || !any_file(path, is_model_weights);
}

bool may_hold_adapter(const std::string& path) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) return is_gguf_file(path);
  if (fs::exists(fs::path(path) / "adapter_config.json", error)) return true;
  if (fs::exists(fs::path(path) / "config.json", error)) return false;
  return any_file(path, [](const fs::path& file) { return file.extension() == ".gguf"; });
}

}  // namespace tgi
