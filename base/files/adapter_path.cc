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
  return (name.starts_with("model") && name.ends_with(".safetensors")) ||
         (name.starts_with("pytorch_model") && name.ends_with(".bin"));
}

}  // namespace

bool is_peft_folder(const std::string& path) {
  std::error_code error;
  if (!fs::exists(fs::path(path) / "adapter_config.json", error)) return false;
  if (!fs::exists(fs::path(path) / "config.json", error)) return true;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    if (is_model_weights(entry.path())) return false;
  }
  return true;
}

bool may_hold_adapter(const std::string& path) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) return is_gguf_file(path);
  if (fs::exists(fs::path(path) / "adapter_config.json", error)) return true;
  if (fs::exists(fs::path(path) / "config.json", error)) return false;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    if (entry.path().extension() == ".gguf") return true;
  }
  return false;
}

}  // namespace tgi
