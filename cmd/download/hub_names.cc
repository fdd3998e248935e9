#include "cmd/download/hub_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"

namespace tgi::download {
namespace {

constexpr size_t kMaxRepoBytes = 96;
constexpr size_t kMaxFileBytes = 1024;
constexpr size_t kMaxPartBytes = 255;  // of a name in a folder

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// What is wrong with a part of ORG/NAME; empty: nothing.
std::string_view trouble_of_part(std::string_view part) {
  if (part.empty()) return "a part is empty";
  for (const char c : part) {
    if (!is_alphanumeric(c) && c != '-' && c != '_' && c != '.') {
      return "only letters, digits, '-', '_' and '.' are allowed";
    }
  }
  if (part.front() == '-' || part.front() == '.' || part.back() == '-' || part.back() == '.') {
    return "a part may not begin or end with '-' or '.'";
  }
  return {};
}

std::string_view trouble_of_repo(std::string_view repo) {
  if (repo.size() > kMaxRepoBytes) return "it is longer than 96 characters";
  if (std::count(repo.begin(), repo.end(), '/') > 1) return "it has more than one '/'";
  const size_t slash = repo.find('/');
  if (slash != std::string_view::npos) {
    if (const auto trouble = trouble_of_part(repo.substr(0, slash)); !trouble.empty()) {
      return trouble;
    }
  }
  if (const auto trouble = trouble_of_part(repo.substr(slash + 1)); !trouble.empty()) {
    return trouble;  // npos + 1 is 0
  }
  if (repo.find("--") != std::string_view::npos || repo.find("..") != std::string_view::npos) {
    return "'--' and '..' are not allowed";
  }
  if (repo.ends_with(".git")) return "it may not end with .git";
  return {};
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

std::string_view trouble_of_file(std::string_view name) {
  if (name.empty()) return "it is empty";
  if (name.size() > kMaxFileBytes) return "it is longer than 1024 bytes";
  if (name.front() == '/') return "it is absolute";
  if (valid_utf8_prefix(name) != name.size()) return "it is not UTF-8";
  if (std::any_of(name.begin(), name.end(), is_control)) return "it has a control character";
  if (name.find('\\') != std::string_view::npos) return "it has a backslash";
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (part.empty()) return "a part of it is empty";
    if (part == "." || part == "..") return "it leaves its folder";
    if (part.size() > kMaxPartBytes) return "a part of it is longer than 255 bytes";
    // "C:name" is a drive on systems the cache may be shared with.
    if (part.size() >= 2 && part[1] == ':') return "it names a drive";
    begin = end + 1;
  }
  return {};
}

// Safe to print whatever it holds.
std::string shown(std::string_view name) {
  std::string out;
  for (const char c : name.substr(0, 200)) {
    out += is_control(c) || static_cast<unsigned char>(c) >= 0x80
               ? fmt::format("\\x{:02x}", static_cast<unsigned char>(c))
               : std::string(1, c);
  }
  return out;
}

}  // namespace

std::optional<HubName> parse_hub_name(std::string_view text) {
  const size_t at = text.find('@');
  const std::string_view repo = text.substr(0, at);
  if (!trouble_of_repo(repo).empty()) return std::nullopt;
  HubName name{.repo = std::string(repo), .revision = "main"};
  if (at != std::string_view::npos) {
    name.revision = std::string(text.substr(at + 1));
    check_revision(name.revision);
  }
  return name;
}

HubName require_hub_name(std::string_view text) {
  if (const auto trouble = trouble_of_repo(text.substr(0, text.find('@'))); !trouble.empty()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("expected a model as ORG/NAME or ORG/NAME@REVISION, got \"{}\": {}",
                            shown(text), trouble));
  }
  return *parse_hub_name(text);
}

void check_revision(std::string_view revision) {
  const bool is_ref = trouble_of_file(revision).empty() && revision.front() != '-' &&
                      !revision.ends_with(".lock") && revision.find("..") == std::string::npos &&
                      revision.find_first_of(" ~^:?*[@") == std::string_view::npos;
  if (is_ref) return;
  throw Error(Code::kInvalidArgument,
              fmt::format("expected a revision (a branch, a tag or a commit), got \"{}\"",
                          shown(revision)));
}

void check_file_name(std::string_view name) {
  const std::string_view trouble = trouble_of_file(name);
  if (trouble.empty()) return;
  throw Error(Code::kInvalidArgument,
              fmt::format("the server lists a file \"{}\": {}; nothing was downloaded. A name like "
                          "this would be written outside of the cache: do not trust this source",
                          shown(name), trouble));
}

bool is_commit(std::string_view text) {
  return text.size() == 40 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

std::string percent_encode(std::string_view text, bool keep_slash) {
  std::string out;
  for (const char c : text) {
    const bool plain = is_alphanumeric(c) || c == '-' || c == '_' || c == '.' || c == '~' ||
                       (c == '/' && keep_slash);
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace tgi::download
