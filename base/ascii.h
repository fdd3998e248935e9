// Letters of ASCII in one case, for names whose case does not matter. Everything else stays as it
// is, whatever the locale.
#pragma once

#include <string>
#include <string_view>

namespace tgi {

inline std::string ascii_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return out;
}

inline std::string ascii_upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  return out;
}

}  // namespace tgi
