// The files of the page of `tgi serve` (assets/ui, and the two libraries of Debian that it uses),
// as the build put them into the executable: each compressed with gzip.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tgi::http {

struct UiFile {
  std::string_view name;  // "app.js"; "lib/marked.js"
  std::string_view content_type;
  std::string_view gzip;  // (as RFC 1952) of all its bytes
};

// nullopt: there is no such file.
std::optional<UiFile> find_ui_file(std::string_view name);

// The bytes of a file that was compressed with gzip. Throws kInternal when they are damaged.
std::string gunzip(std::string_view compressed);

}  // namespace tgi::http
