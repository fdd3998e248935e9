// The demo model in a folder, with one number of its weights overwritten.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"
#include "base/nlohmann_json.h"

namespace tgi {

inline constexpr uint16_t kBf16Nan = 0x7FC0;
inline constexpr uint16_t kBf16Infinity = 0x7F80;

// Element `index` of `tensor` gets the bf16 number `bits`.
inline void write_damaged_demo(const std::string& folder,
                               const std::string& tensor,
                               uint64_t index,
                               uint16_t bits) {
  namespace fs = std::filesystem;
  fs::copy(std::string(TGI_SOURCE_DIR) + "/assets/demo", folder,
           fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  std::fstream file(folder + "/model.safetensors", std::ios::binary | std::ios::in | std::ios::out);
  uint64_t header_size = 0;
  file.read(reinterpret_cast<char*>(&header_size), sizeof header_size);
  std::string header(header_size, '\0');
  file.read(header.data(), static_cast<std::streamsize>(header_size));
  const auto stored = nlohmann::json::parse(header).at(tensor);
  TGI_CHECK(stored.at("dtype") == "BF16");
  const uint64_t begin = stored.at("data_offsets").at(0);
  file.seekp(static_cast<std::streamoff>(8 + header_size + begin + 2 * index));
  file.write(reinterpret_cast<const char*>(&bits), sizeof bits);
  TGI_CHECK(file.good());
}

}  // namespace tgi
