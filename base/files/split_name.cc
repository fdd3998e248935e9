#include "base/files/split_name.h"

#include <fmt/format.h>

#include <string_view>

namespace tgi {

std::string SplitName::part(int which) const {
  return fmt::format("{}-{:05}-of-{:05}.gguf", stem, which, count);
}

std::optional<SplitName> split_name(const std::string& path) {
  constexpr size_t kTail = std::string_view("-00002-of-00005.gguf").size();
  if (path.size() <= kTail) return std::nullopt;
  SplitName out{.stem = path.substr(0, path.size() - kTail)};
  const std::string tail = path.substr(path.size() - kTail);
  for (const size_t digits : {size_t{1}, size_t{10}}) {
    for (size_t i = digits; i < digits + 5; ++i) {
      if (tail[i] < '0' || tail[i] > '9') return std::nullopt;
    }
  }
  out.number = std::stoi(tail.substr(1, 5));
  out.count = std::stoi(tail.substr(10, 5));
  const bool is_one = out.number >= 1 && out.number <= out.count && out.part(out.number) == path;
  return is_one ? std::optional(out) : std::nullopt;
}

bool is_gguf_model_name(const std::string& name) {
  if (!name.ends_with(".gguf") || name.starts_with("mmproj")) return false;
  const auto split = split_name(name);
  return !split || split->number == 1;
}

std::vector<std::string> all_parts(const std::string& path) {
  const auto split = split_name(path);
  if (!split) return {path};
  std::vector<std::string> out;
  for (int number = 1; number <= split->count; ++number) out.push_back(split->part(number));
  return out;
}

}  // namespace tgi
