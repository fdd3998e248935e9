#include "cuda/architectures.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace tgi::cuda {
namespace {

Architecture parse_architecture(std::string_view entry) {
  std::string_view rest = entry;
  Architecture out;
  const auto ends_with = [&rest](std::string_view suffix) {
    if (!rest.ends_with(suffix)) return false;
    rest.remove_suffix(suffix.size());
    return true;
  };
  if (ends_with("-virtual")) {
    out.machine_code = false;
    out.ptx = true;
  } else if (!ends_with("-real")) {
    out.ptx = true;
  }
  if (!rest.empty() && (rest.back() == 'a' || rest.back() == 'f')) {
    out.variant = rest.back();
    rest.remove_suffix(1);
  }
  int number = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (error != std::errc() || end != rest.data() + rest.size() || number < 10) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("CMAKE_CUDA_ARCHITECTURES: expected numbers like 90-real, got \"{}\"", entry));
  }
  out.major = number / 10;
  out.minor = number % 10;
  return out;
}

std::string name_of(const Architecture& built) {
  const std::string variant = built.variant == '\0' ? "" : std::string(1, built.variant);
  return fmt::format("sm_{}{}{}{}", built.major, built.minor, variant,
                     built.machine_code ? "" : " (PTX)");
}

}  // namespace

std::vector<Architecture> parse_architectures(std::string_view list) {
  std::vector<Architecture> out;
  while (!list.empty()) {
    const size_t end = std::min(list.find_first_of(";,"), list.size());
    if (end > 0) out.push_back(parse_architecture(list.substr(0, end)));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return out;
}

bool runs_on(const Architecture& built, int major, int minor) {
  const bool is_later_of_family = built.major == major && minor >= built.minor;
  switch (built.variant) {
    case 'a':
      return built.major == major && built.minor == minor;
    case 'f':
      return is_later_of_family;
    default:
      return (built.machine_code && is_later_of_family) ||
             (built.ptx && (is_later_of_family || major > built.major));
  }
}

const std::vector<Architecture>& built_architectures() {
  static const std::vector<Architecture> built = parse_architectures(TGI_CUDA_ARCHITECTURES);
  return built;
}

void check_architecture(std::string_view gpu, int major, int minor) {
  const std::vector<Architecture>& built = built_architectures();
  std::string names;
  for (const Architecture& each : built) {
    if (runs_on(each, major, minor)) return;
    names += (names.empty() ? "" : ", ") + name_of(each);
  }
  throw Error(Code::kUnsupported,
              fmt::format("{} has compute capability {}.{}, and this build of the cuda backend "
                          "has kernels for {}; use --backend cpu{}",
                          gpu, major, minor, names,
                          major < 8 ? " (the kernels need 8.0 or later)"
                                    : fmt::format(", or build with "
                                                  "-DCMAKE_CUDA_ARCHITECTURES={}{}-real",
                                                  major, minor)));
}

}  // namespace tgi::cuda
