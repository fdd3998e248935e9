#include "base/files/safetensors_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <set>
#include <string_view>

#include "base/error.h"

namespace tgi {
namespace {

constexpr size_t kLengthBytes = 8;
constexpr size_t kHeaderAlignment = 8;  // of the data's start, so that mapped arrays are aligned
constexpr int64_t kMaxBytes = int64_t{1} << 62;

struct DTypeSize {
  std::string_view name;
  int64_t bytes;
};

constexpr std::array<DTypeSize, 16> kDTypeSizes = {{
    {"BOOL", 1},
    {"U8", 1},
    {"I8", 1},
    {"F8_E4M3", 1},
    {"F8_E5M2", 1},
    {"F8_E8M0", 1},
    {"U16", 2},
    {"I16", 2},
    {"F16", 2},
    {"BF16", 2},
    {"U32", 4},
    {"I32", 4},
    {"F32", 4},
    {"U64", 8},
    {"I64", 8},
    {"F64", 8},
}};

[[noreturn]] void fail_to(std::string_view what, const std::string& path) {
  const int reason = errno;
  const bool full = reason == ENOSPC || reason == EDQUOT || reason == EFBIG;
  const Code code = full               ? Code::kOutOfMemory
                    : reason == ENOENT ? Code::kNotFound
                                       : Code::kInvalidArgument;
  throw Error(code, fmt::format("{}: can't {}: {}", path, what, std::strerror(reason)));
}

std::string header_text(std::span<const TensorHeader> entries,
                        const std::map<std::string, std::string>& metadata,
                        int64_t& data_bytes) {
  // Kept in the order of the data: readers that go through the header read the file forward.
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  for (const TensorHeader& entry : entries) {
    const int64_t begin = data_bytes;
    const int64_t size = entry.bytes();
    if (size > kMaxBytes - data_bytes) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: the file would be too large", entry.name));
    }
    data_bytes += size;
    nlohmann::ordered_json& info = header[entry.name];
    if (!info.is_null()) {
      throw Error(Code::kInvalidArgument, fmt::format("two arrays are named '{}'", entry.name));
    }
    info = {{"dtype", entry.dtype},
            {"shape", entry.shape},
            {"data_offsets", std::array{begin, data_bytes}}};
  }
  std::string text = header.dump();
  text.append((kHeaderAlignment - text.size() % kHeaderAlignment) % kHeaderAlignment, ' ');
  return text;
}

}  // namespace

int64_t TensorHeader::bytes() const {
  int64_t size = 0;
  for (const DTypeSize& row : kDTypeSizes) {
    if (row.name == dtype) size = row.bytes;
  }
  if (size == 0) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: element type {} can't be written to safetensors", name, dtype));
  }
  bool empty = false;
  for (const int64_t extent : shape) {
    if (extent < 0) {
      throw Error(Code::kInvalidArgument, fmt::format("{}: a size of {}", name, extent));
    }
    empty = empty || extent == 0;
  }
  if (empty) return 0;
  for (const int64_t extent : shape) {
    if (size > kMaxBytes / extent) {
      throw Error(Code::kInvalidArgument, fmt::format("{}: too large", name));
    }
    size *= extent;
  }
  return size;
}

SafetensorsWriter::SafetensorsWriter(std::string path,
                                     std::span<const TensorHeader> entries,
                                     const std::map<std::string, std::string>& metadata)
    : path_(std::move(path)) {
  std::string header;
  try {
    header = header_text(entries, metadata, missing_bytes_);
  } catch (const Error& error) {
    throw error.in(path_);
  }
  file_.reset(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file_) fail_to("create", path_);
  std::array<std::byte, kLengthBytes> length;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length[i] = static_cast<std::byte>((static_cast<uint64_t>(header.size()) >> (8 * i)) & 0xFF);
  }
  write(length);
  write(std::as_bytes(std::span(header)));
}

void SafetensorsWriter::append(std::span<const std::byte> bytes) {
  TGI_CHECK(static_cast<int64_t>(bytes.size()) <= missing_bytes_);
  write(bytes);
  missing_bytes_ -= static_cast<int64_t>(bytes.size());
}

void SafetensorsWriter::finish() {
  TGI_CHECK(missing_bytes_ == 0);
  if (::fsync(file_.get()) != 0) fail_to("write", path_);
  // A file system may tell only now that there was no room.
  if (::close(file_.release()) != 0) fail_to("write", path_);
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      fail_to("write", path_);
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

Json ShardPlan::index_json() const {
  Json weight_map = Json::object();
  for (const Shard& shard : shards) {
    for (const TensorHeader& entry : shard.entries) weight_map[entry.name] = shard.file;
  }
  return {{"metadata", {{"total_size", total_bytes}}}, {"weight_map", std::move(weight_map)}};
}

ShardPlan plan_shards(std::vector<TensorHeader> entries, int64_t max_shard_bytes) {
  ShardPlan plan;
  int64_t shard_bytes = 0;
  for (TensorHeader& entry : entries) {
    const int64_t size = entry.bytes();
    if (plan.shards.empty() || (shard_bytes > 0 && size > max_shard_bytes - shard_bytes)) {
      plan.shards.emplace_back();
      shard_bytes = 0;
    }
    shard_bytes += size;
    plan.total_bytes += size;
    plan.shards.back().entries.push_back(std::move(entry));
  }
  for (size_t i = 0; i < plan.shards.size(); ++i) {
    plan.shards[i].file = plan.shards.size() == 1 ? "model.safetensors"
                                                  : fmt::format("model-{:05}-of-{:05}.safetensors",
                                                                i + 1, plan.shards.size());
  }
  return plan;
}

}  // namespace tgi
