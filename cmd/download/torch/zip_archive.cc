#include "cmd/download/torch/zip_archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/error.h"

namespace tgi::download {
namespace {

constexpr uint32_t kLocalSignature = 0x04034b50;
constexpr uint32_t kCentralSignature = 0x02014b50;
constexpr uint32_t kEndSignature = 0x06054b50;
constexpr uint32_t kEnd64Signature = 0x06064b50;
constexpr uint32_t kLocator64Signature = 0x07064b50;
constexpr uint64_t kLocalBytes = 30;
constexpr uint64_t kCentralBytes = 46;
constexpr uint64_t kEndBytes = 22;
constexpr uint64_t kEnd64Bytes = 56;
constexpr uint64_t kLocator64Bytes = 20;
constexpr uint64_t kMaxComment = 65535;
constexpr uint16_t kZip64Extra = 1;
constexpr uint32_t kIn64 = 0xffffffff;  // in a field of 32 bits: look in the zip64 one

class ZipReader {
 public:
  ZipReader(std::span<const std::byte> bytes, std::string_view where)
      : bytes_(bytes), where_(where) {}

  std::vector<ZipMember> read() {
    const Directory directory = find_directory();
    std::vector<ZipMember> out;
    uint64_t at = directory.offset;
    // The count is only a claim, the size of the directory bounds the work.
    while (at < directory.end && out.size() < directory.num_members) {
      out.push_back(read_member(at, directory));
    }
    if (out.size() != directory.num_members || at != directory.end) {
      fail(fmt::format("its directory has {} members, but says {}", out.size(),
                       directory.num_members));
    }
    return out;
  }

 private:
  struct Directory {
    uint64_t offset = 0;
    uint64_t end = 0;
    uint64_t num_members = 0;
  };

  struct Sizes {
    uint64_t size = 0;
    uint64_t compressed_size = 0;
    uint64_t header_offset = 0;
  };

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: a damaged zip file: {}; download it again", where_, what));
  }

  // Little-endian. Every read is checked.
  template <typename T>
  T number(uint64_t at) const {
    if (at > bytes_.size() || bytes_.size() - at < sizeof(T)) fail("it ends too early");
    uint64_t out = 0;
    for (size_t i = 0; i < sizeof(T); ++i) {
      out |= std::to_integer<uint64_t>(bytes_[static_cast<size_t>(at) + i]) << (8 * i);
    }
    return static_cast<T>(out);
  }

  std::span<const std::byte> slice(uint64_t at, uint64_t size) const {
    if (at > bytes_.size() || bytes_.size() - at < size) fail("it ends too early");
    return bytes_.subspan(static_cast<size_t>(at), static_cast<size_t>(size));
  }

  // The last record, before a comment of any length.
  uint64_t find_end() const {
    if (bytes_.size() < kEndBytes) fail("it ends too early");
    const uint64_t last = bytes_.size() - kEndBytes;
    const uint64_t first = last > kMaxComment ? last - kMaxComment : 0;
    for (uint64_t at = last + 1; at-- > first;) {
      if (number<uint32_t>(at) == kEndSignature &&
          at + kEndBytes + number<uint16_t>(at + 20) == bytes_.size()) {
        return at;
      }
    }
    fail("it has no directory at its end, so it was cut off");
  }

  Directory find_directory() const {
    const uint64_t end = find_end();
    Directory out{.offset = number<uint32_t>(end + 16),
                  .end = number<uint32_t>(end + 12),
                  .num_members = number<uint16_t>(end + 10)};
    uint64_t last = end;  // the directory lies before it
    if (end >= kLocator64Bytes && number<uint32_t>(end - kLocator64Bytes) == kLocator64Signature) {
      const uint64_t end64 = number<uint64_t>(end - kLocator64Bytes + 8);
      (void)slice(end64, kEnd64Bytes);
      if (number<uint32_t>(end64) != kEnd64Signature) fail("its zip64 record is missing");
      out = {.offset = number<uint64_t>(end64 + 48),
             .end = number<uint64_t>(end64 + 40),
             .num_members = number<uint64_t>(end64 + 32)};
      last = end64;
    }
    if (out.offset > last || out.end > last - out.offset) fail("its directory does not fit in it");
    out.end += out.offset;
    return out;
  }

  // Those that don't fit into 32 bits stand in an extra field, in this order.
  void read_zip64(uint64_t at, uint64_t size, Sizes& sizes) const {
    const uint64_t end = at + size;
    while (end - at >= 4) {
      const auto kind = number<uint16_t>(at);
      const auto length = number<uint16_t>(at + 2);
      at += 4;
      if (length > end - at) fail("an extra field does not fit in its member");
      uint64_t value_at = at;
      const uint64_t field_end = at + length;
      at = field_end;
      if (kind != kZip64Extra) continue;
      for (uint64_t* value : {&sizes.size, &sizes.compressed_size, &sizes.header_offset}) {
        if (*value != kIn64) continue;
        if (field_end - value_at < 8) fail("a zip64 field is too short");
        *value = number<uint64_t>(value_at);
        value_at += 8;
      }
    }
  }

  // The entry of the directory at `at`, which moves on behind it.
  ZipMember read_member(uint64_t& at, const Directory& directory) const {
    if (directory.end - at < kCentralBytes) fail("its directory ends too early");
    if (number<uint32_t>(at) != kCentralSignature) fail("an entry of its directory is malformed");
    const auto flags = number<uint16_t>(at + 8);
    const auto method = number<uint16_t>(at + 10);
    Sizes sizes{.size = number<uint32_t>(at + 24),
                .compressed_size = number<uint32_t>(at + 20),
                .header_offset = number<uint32_t>(at + 42)};
    const uint64_t name_size = number<uint16_t>(at + 28);
    const uint64_t extra_size = number<uint16_t>(at + 30);
    const uint64_t comment_size = number<uint16_t>(at + 32);
    at += kCentralBytes;
    if (directory.end - at < name_size + extra_size + comment_size) {
      fail("its directory ends too early");
    }
    const auto name_bytes = slice(at, name_size);
    const std::string_view name(reinterpret_cast<const char*>(name_bytes.data()),
                                name_bytes.size());
    read_zip64(at + name_size, extra_size, sizes);
    at += name_size + extra_size + comment_size;
    // Bit 0: encrypted. Method 0: as it is.
    const bool is_plain = (flags & 1) == 0 && method == 0 && sizes.size == sizes.compressed_size;
    return {.name = name, .bytes = data_of(sizes, directory), .is_plain = is_plain};
  }

  std::span<const std::byte> data_of(const Sizes& sizes, const Directory& directory) const {
    const uint64_t header = sizes.header_offset;
    if (header > directory.offset || directory.offset - header < kLocalBytes) {
      fail("a member lies behind the directory");
    }
    if (number<uint32_t>(header) != kLocalSignature) fail("a member is not where it should be");
    // Its own name and extra field may differ in length from those of the directory.
    const uint64_t data =
        header + kLocalBytes + number<uint16_t>(header + 26) + number<uint16_t>(header + 28);
    if (data > directory.offset || directory.offset - data < sizes.compressed_size) {
      fail("a member reaches into the directory");
    }
    return slice(data, sizes.compressed_size);
  }

  const std::span<const std::byte> bytes_;
  const std::string_view where_;
};

}  // namespace

bool looks_like_zip(std::span<const std::byte> bytes) {
  return bytes.size() >= 4 && bytes[0] == std::byte{'P'} && bytes[1] == std::byte{'K'} &&
         (bytes[2] == std::byte{3} || bytes[2] == std::byte{5});
}

std::vector<ZipMember> read_zip(std::span<const std::byte> bytes, std::string_view where) {
  return ZipReader(bytes, where).read();
}

}  // namespace tgi::download
