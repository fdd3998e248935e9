#include "cmd/download/hub_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

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

// ORG/NAME[:FILE][@REVISION], or the last two the other way round.
struct Parts {
  std::string_view repo;
  std::optional<std::string_view> revision{};
  std::optional<std::string_view> file{};
};

Parts split_parts(std::string_view text) {
  const size_t end = std::min(text.find_first_of(":@"), text.size());
  Parts out{.repo = text.substr(0, end)};
  const auto take = [&](char mark, char other) {
    const std::string_view rest = text.substr(out.repo.size());
    const size_t begin = rest.find(mark);
    if (begin == std::string_view::npos) return std::optional<std::string_view>();
    const size_t next = rest.find(other, begin);
    return std::optional(
        rest.substr(begin + 1, next == std::string_view::npos ? next : next - begin - 1));
  };
  out.revision = take('@', ':');
  out.file = take(':', '@');
  return out;
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

std::string_view trouble_of_name(const Parts& parts) {
  if (const auto trouble = trouble_of_repo(parts.repo); !trouble.empty()) return trouble;
  if (!parts.file) return {};
  if (parts.repo.find('/') == std::string_view::npos) {
    return "a name without ORG/ has no \":QUANTISATION\"";
  }
  return trouble_of_file(*parts.file);
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
  const Parts parts = split_parts(text);
  if (!trouble_of_name(parts).empty()) return std::nullopt;
  HubName name{.repo = std::string(parts.repo), .revision = "main"};
  if (parts.revision) {
    name.revision = std::string(*parts.revision);
    check_revision(name.revision);
  }
  name.file = std::string(parts.file.value_or(""));
  return name;
}

HubName require_hub_name(std::string_view text) {
  if (const auto trouble = trouble_of_name(split_parts(text)); !trouble.empty()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("expected a model as ORG/NAME, ORG/NAME@REVISION or "
                            "ORG/NAME:QUANTISATION, got \"{}\": {}",
                            shown(text), trouble));
  }
  return *parse_hub_name(text);
}

std::string name_of_hub_address(std::string_view text, std::string_view endpoint) {
  std::string_view path = text;
  const auto take = [&](std::string_view prefix) {
    const bool has = !prefix.empty() && path.starts_with(prefix);
    if (has) path.remove_prefix(prefix.size());
    return has;
  };
  const bool has_scheme = take("https://") || take("http://");
  (void)take("www.");
  const bool is_host = take("huggingface.co/") || take("hf.co/");
  if (!is_host) {
    path = text;
    const std::string below = std::string(endpoint) + "/";
    if (!has_scheme || endpoint.empty() || !take(below)) return std::string(text);
  }
  path = path.substr(0, path.find_first_of("?#"));
  while (path.ends_with('/')) path.remove_suffix(1);
  std::vector<std::string> parts;  // ORG, NAME, "resolve", REVISION, and the file
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end =
        parts.size() == 4 ? path.size() : std::min(path.find('/', begin), path.size());
    parts.push_back(percent_decode(path.substr(begin, end - begin)));
    begin = end + 1;
  }
  if (parts.size() < 2) return std::string(text);
  const std::string repo = parts[0] + "/" + parts[1];
  if (!parse_hub_name(repo)) return std::string(text);
  if (parts.size() == 2) return is_host ? repo : std::string(text);
  const bool is_page = parts[2] == "tree" || parts[2] == "resolve" || parts[2] == "blob";
  if (!is_page) return std::string(text);
  const std::string revision = parts.size() > 3 ? "@" + parts[3] : "";
  const bool has_file = parts.size() > 4 && parts[4].ends_with(".gguf");
  return repo + (has_file ? ":" + parts[4] : "") + revision;
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

std::string percent_decode(std::string_view text) {
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_code =
        text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0;
    out += is_code ? static_cast<char>(16 * digit(text[i + 1]) + digit(text[i + 2])) : text[i];
    if (is_code) i += 2;
  }
  return out;
}

}  // namespace tgi::download
