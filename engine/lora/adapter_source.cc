#include "engine/lora/adapter_source.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/files/mapped_file.h"
#include "engine/lora/adapter_files.h"
#include "engine/lora/gguf_adapter.h"

namespace tgi {
namespace {

namespace fs = std::filesystem;

class GgufAdapterSource final : public FileSource {
 public:
  explicit GgufAdapterSource(const std::string& path) : path_(path), file_(path) {
    try {
      const GgufFile parsed = parse_gguf(file_.bytes(), path);
      try {
        config_ = gguf_adapter_config(parsed);
      } catch (const Error& error) {
        throw error.in(path);
      }
    } catch (const Error&) {
      check_intact();  // a file cut short while it was read looks like anything
      throw;
    }
  }

  std::optional<std::span<const std::byte>> find(const std::string& name) const override {
    if (name == kGgufAdapterFile) return file_.bytes();
    if (name == kAdapterConfigFile) return std::as_bytes(std::span(config_));
    return std::nullopt;
  }
  std::vector<std::string> names() const override { return {kGgufAdapterFile, kAdapterConfigFile}; }
  std::string describe(const std::string& /*name*/) const override { return path_; }
  void release(std::span<const std::byte> bytes) const override { file_.release(bytes); }
  void check_intact() const override { file_.check_intact(); }

 private:
  const std::string path_;
  const MappedFile file_;
  std::string config_;
};

// The GGUF file that `path` is, or that is alone in a folder without a config of PEFT.
std::optional<std::string> gguf_of(const std::string& path) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) return path;
  if (!fs::is_directory(path, error) || fs::exists(fs::path(path) / kAdapterConfigFile, error)) {
    return std::nullopt;
  }
  std::optional<std::string> found;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    if (entry.path().extension() != ".gguf") continue;
    if (found) {
      throw Error(
          Code::kInvalidArgument,
          fmt::format("{}: there are several GGUF files in this folder; name one of them", path));
    }
    found = entry.path().string();
  }
  return found;
}

}  // namespace

std::unique_ptr<FileSource> open_adapter_source(const std::string& path) {
  if (const auto file = gguf_of(path)) return std::make_unique<GgufAdapterSource>(*file);
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    throw Error(
        Code::kNotFound,
        fmt::format("{}: {}; give a folder that holds {}, or a GGUF file", path,
                    error ? error.message() : "neither a folder nor a file", kAdapterConfigFile));
  }
  return open_folder(path);
}

std::vector<std::string> adapter_paths(const std::string& path) {
  try {
    if (auto file = gguf_of(path)) return {std::move(*file)};
  } catch (const Error&) {
    // Who opens it is told.
  }
  return {fmt::format("{}/{}", path, kAdapterConfigFile),
          fmt::format("{}/{}", path, kAdapterWeightsFile)};
}

bool is_gguf_adapter_path(const std::string& path) {
  try {
    const auto file = gguf_of(path);
    if (!file) return false;
    const MappedFile mapped(*file);
    if (!is_gguf(mapped.bytes())) return false;
    const bool is_one = is_adapter(parse_gguf(mapped.bytes(), *file).metadata);
    mapped.check_intact();
    return is_one;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace tgi
