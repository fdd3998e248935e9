#include "ipc/model_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ipc/protocol.h"

namespace tgi::ipc {
namespace {

constexpr size_t kMaxName = 128;

bool may_be_in_name(char c) {
  const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return is_letter || (c >= '0' && c <= '9') || std::string_view("-._:@").find(c) < 5;
}

// The default one with the others, if it has a name.
std::vector<OtherModelStatus> named_models(const Status& status) {
  std::vector<OtherModelStatus> out = status.others;
  if (status.known() != nullptr && !status.known()->served_name.empty()) {
    out.insert(out.begin(), {.name = status.known()->served_name,
                             .phase = status.phase,
                             .phase_detail = status.phase_detail,
                             .path = status.path,
                             .model = status.model,
                             .last_model = status.last_model,
                             .stay = status.stay,
                             .counters = status.counters});
  }
  return out;
}

}  // namespace

void check_model_name(const std::string& name) {
  const bool has_parts =
      !name.starts_with('/') && !name.ends_with('/') && name.find("//") == std::string::npos;
  const auto may_be = [](char c) { return c == '/' || may_be_in_name(c); };
  const bool fits = !name.empty() && name.size() <= kMaxName;
  if (fits && has_parts && std::ranges::all_of(name, may_be)) return;
  throw Error(
      Code::kInvalidArgument,
      fmt::format("expected a model's name, which has 1 to {} letters, digits and -._:@, as "
                  "ORG/NAME too, got \"{}\"",
                  kMaxName, name.substr(0, 200)));
}

std::string model_name_of(const std::string& shown) {
  std::string out = shown;
  if (shown.starts_with('/')) {
    const std::filesystem::path path(shown);
    out = (path.extension() == ".gguf" ? path.stem() : path.filename()).string();
  }
  std::ranges::replace_if(
      out, [](char c) { return c != '/' && !may_be_in_name(c); }, '-');
  out.resize(std::min(out.size(), kMaxName));
  return out.empty() ? "model" : out;
}

NamedModel split_named_model(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || text.find('/') < equals) return {.name = {}, .model = text};
  NamedModel out{.name = text.substr(0, equals), .model = text.substr(equals + 1)};
  check_model_name(out.name);
  if (!out.model.empty()) return out;
  throw Error(Code::kInvalidArgument, fmt::format("expected NAME=MODEL, got \"{}\"", text));
}

bool has_model(const Status& status, const std::string& name) {
  return std::ranges::any_of(named_models(status),
                             [&](const OtherModelStatus& each) { return each.name == name; });
}

OtherModelStatus find_model(const Status& status, const std::string& name) {
  std::string names;
  for (OtherModelStatus& each : named_models(status)) {
    if (each.name == name) return std::move(each);
    names += (names.empty() ? "" : ", ") + each.name;
  }
  throw Error(Code::kNotFound,
              fmt::format("the daemon has no model of the name {}; there {}", name,
                          names.empty() ? "is none with a name" : "are: " + names));
}

}  // namespace tgi::ipc
