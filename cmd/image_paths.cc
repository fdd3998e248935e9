#include "cmd/image_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/error.h"

namespace tgi {
namespace {

constexpr std::array<std::string_view, 9> kEndings = {".png", ".jpg", ".jpeg", ".webp", ".gif",
                                                      ".bmp", ".tif", ".tiff", ".heic"};
constexpr std::string_view kWhitespace = " \t\r\n";
constexpr std::string_view kMarks = "\"'`()[]<>,;!?";  // around a path, and no part of it

bool is_image(std::string_view path) {
  std::string lower(path);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  const bool is_path =
      std::ranges::any_of(std::array<std::string_view, 4>{"/", "./", "../", "~/"},
                          [&](std::string_view beginning) { return lower.starts_with(beginning); });
  return is_path && std::ranges::any_of(
                        kEndings, [&](std::string_view ending) { return lower.ends_with(ending); });
}

bool is_there(std::string_view path) {
  std::string full(path);
  const char* const home = std::getenv("HOME");
  if (full.starts_with("~/") && home != nullptr) full.replace(0, 1, home);
  std::error_code error;
  return std::filesystem::is_regular_file(full, error);
}

}  // namespace

void refuse_images(std::string_view text, std::string_view way_out) {
  for (size_t at = 0; (at = text.find_first_not_of(kWhitespace, at)) != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kWhitespace, at), text.size());
    std::string_view word = text.substr(at, end - at);
    at = end;
    word.remove_prefix(std::min(word.find_first_not_of(kMarks), word.size()));
    word = word.substr(0, word.find_last_not_of(kMarks) + 1);
    if (word.ends_with('.')) word.remove_suffix(1);  // of the sentence
    if (!is_image(word) || !is_there(word)) continue;
    throw Error(Code::kUnsupported,
                fmt::format("{} is an image, and models read text alone here: leave its path out, "
                            "or {} if the path itself is meant",
                            word, way_out));
  }
}

}  // namespace tgi
