// The members of a zip file as torch.save writes it: stored, never compressed, so that each is a
// view into the mapped file. Zip64 too. Not a general reader: nothing is decompressed.
//
// Format: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tgi::download {

struct ZipMember {
  std::string_view name;
  std::span<const std::byte> bytes;
  bool is_plain = true;  // false: compressed or encrypted, the bytes are no use
};

// True when `bytes` begins as a zip file does.
bool looks_like_zip(std::span<const std::byte> bytes);

// Reads the directory at the end of the file. The members are views of `bytes`. Throws
// kInvalidArgument beginning with `where` for a file that is cut off or malformed.
std::vector<ZipMember> read_zip(std::span<const std::byte> bytes, std::string_view where);

}  // namespace tgi::download
