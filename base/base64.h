// Bytes written as text (RFC 4648, section 4).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tgi {

std::string encode_base64(std::span<const std::byte> bytes);

// Takes the alphabet and its padding and nothing else: no line breaks. Throws kInvalidArgument
// saying what is no base64.
std::string decode_base64(std::string_view text);

}  // namespace tgi
