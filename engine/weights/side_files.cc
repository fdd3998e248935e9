#include "engine/weights/side_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "base/error.h"

namespace tgi {
namespace {

bool is_side_file(std::string_view name) {
  static constexpr std::array<std::string_view, 14> kOthers = {
      ".safetensors", ".bin", ".pt",         ".pth", ".gguf", ".h5",     ".msgpack",
      ".onnx",        ".ot",  ".index.json", ".npz", ".ckpt", ".tflite", ".gitattributes"};
  if (name == "config.json") return false;
  return std::ranges::none_of(kOthers,
                              [&](std::string_view ending) { return name.ends_with(ending); });
}

}  // namespace

void write_text_file(const NewFolder& folder, const std::string& name, std::string_view text) {
  std::ofstream file(folder.file(name), std::ios::binary);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file) {
    throw Error(Code::kOutOfMemory,
                fmt::format("{}: can't be written; is the disk full?", folder.file(name)));
  }
}

void copy_side_files(const FileSource& files, const NewFolder& folder) {
  for (const std::string& name : files.names()) {
    if (is_side_file(name)) write_text_file(folder, name, files.require_text(name));
  }
}

}  // namespace tgi
