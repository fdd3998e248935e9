#include "base/base64.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/error.h"

namespace tgi {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

[[noreturn]] void fail_base64(const std::string& got) {
  throw Error(Code::kInvalidArgument, "expected base64, got " + got);
}

}  // namespace

std::string encode_base64(std::span<const std::byte> bytes) {
  const auto byte = [&](size_t i) { return std::to_integer<uint32_t>(bytes[i]); };
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t bits = byte(i) << 16U;
    if (count > 1) bits |= byte(i + 1) << 8U;
    if (count > 2) bits |= byte(i + 2);
    for (size_t digit = 0; digit < 4; ++digit) {
      out += digit <= count ? kDigits[(bits >> (18U - 6U * digit)) & 63U] : '=';
    }
  }
  return out;
}

std::string decode_base64(std::string_view text) {
  const size_t size = text.size();
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  if (size % 4 != 0) fail_base64(fmt::format("{} characters", size));
  std::string bytes;
  bytes.reserve(size / 4 * 3);
  uint32_t bits = 0;
  for (size_t i = 0; i < size - padding; ++i) {
    const int digit = base64_digit(text[i]);
    if (digit < 0) fail_base64(fmt::format("another character at {}", i));
    bits = bits << 6 | static_cast<uint32_t>(digit);
    if (i % 4 == 0) continue;
    bytes += static_cast<char>(bits >> (6 - 2 * (i % 4)) & 0xFF);
  }
  return bytes;
}

}  // namespace tgi
