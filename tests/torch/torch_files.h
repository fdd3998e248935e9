// The committed checkpoints, and ways to look at what became of them.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "base/files/file_source.h"
#include "base/files/mapped_file.h"
#include "engine/weights/checkpoint.h"
#include "engine/weights/safetensors.h"
#include "tests/catch.h"

namespace tgi::download {

inline std::string golden(const std::string& name) {
  return std::string(TGI_SOURCE_DIR) + "/tests/golden/torch/" + name;
}

inline std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_all(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// Name to "F32 (2, 3)" and the bytes.
using Tensors = std::map<std::string, std::pair<std::string, std::string>>;

inline Tensors read_file(const std::string& path) {
  const MappedFile file(path);
  Tensors out;
  for (const SafetensorsEntry& entry : parse_safetensors(file.bytes(), path)) {
    out[entry.name] = {
        std::string(entry.dtype->name) + " " + shape_text(entry.shape),
        std::string(reinterpret_cast<const char*>(entry.bytes.data()), entry.bytes.size())};
  }
  return out;
}

inline Tensors read_folder(const std::string& folder) {
  Tensors out;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".safetensors") out.merge(read_file(entry.path().string()));
  }
  return out;
}

inline void check_equal(const Tensors& got, const Tensors& expected) {
  for (const auto& [name, tensor] : expected) {
    INFO(name);
    REQUIRE(got.contains(name));
    CHECK(got.at(name).first == tensor.first);
    CHECK(got.at(name).second == tensor.second);
  }
  CHECK(got.size() == expected.size());
}

}  // namespace tgi::download
