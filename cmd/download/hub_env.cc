#include "cmd/download/hub_env.h"

#include <fmt/format.h>
#include <unistd.h>
#include <cstdlib>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/ascii.h"
#include "base/error.h"

namespace tgi::download {
namespace {

constexpr const char* kDefaultEndpoint = "https://huggingface.co";

bool is_true(const std::optional<std::string>& value) {
  if (!value) return false;
  const std::string upper = ascii_upper(*value);
  return upper == "1" || upper == "ON" || upper == "YES" || upper == "TRUE";
}

std::string or_empty(const std::optional<std::string>& value) {
  return value.value_or("");
}

std::string home_of(const Variables& variables) {
  const std::string home = or_empty(variables("HOME"));
  return home.empty() ? fmt::format("/tmp/tgi-{}", ::getuid()) : home;
}

std::string why_no_home(const Variables& variables) {
  for (const char* name : {"XDG_CACHE_HOME", "HF_HOME", "HUGGINGFACE_HUB_CACHE", "HF_HUB_CACHE"}) {
    if (variables(name)) return "";
  }
  const std::string home = or_empty(variables("HOME"));
  std::error_code error;
  if (std::filesystem::is_directory(home, error)) return "";
  return fmt::format(
      "{}, so that downloads have no place to stay; give a folder that can be written with "
      "HF_HOME, HF_HUB_CACHE or --cache-dir",
      home.empty() ? "HOME is not set" : fmt::format("HOME {} is not there", home));
}

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::string read_token_file(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return file ? text.str() : "";
}

long read_timeout(const Variables& variables) {
  const std::string text = or_empty(variables("HF_HUB_DOWNLOAD_TIMEOUT"));
  if (text.empty()) return HubSettings().stall_timeout_s;
  long seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || seconds < 1) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("HF_HUB_DOWNLOAD_TIMEOUT: expected whole seconds from 1, got \"{}\"", text));
  }
  return seconds;
}

std::string read_endpoint(const Variables& variables) {
  std::string endpoint = or_empty(variables("HF_ENDPOINT"));
  if (endpoint.empty()) endpoint = kDefaultEndpoint;
  while (endpoint.ends_with('/')) endpoint.pop_back();
  if (!endpoint.starts_with("http://") && !endpoint.starts_with("https://")) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("HF_ENDPOINT: expected http://HOST or https://HOST, got \"{}\"", endpoint));
  }
  return endpoint;
}

void read_token(const Variables& variables, const std::string& hf_home, HubSettings& settings) {
  if (is_true(variables("HF_HUB_DISABLE_IMPLICIT_TOKEN"))) return;
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    settings.token = clean_token(or_empty(variables(name)), name);
    settings.token_from = name;
    if (!settings.token.empty()) return;
  }
  const std::string path =
      expand_path(variables("HF_TOKEN_PATH").value_or(hf_home + "/token"), variables);
  settings.token_from = "the file " + path;
  settings.token = clean_token(read_token_file(path), settings.token_from);
  if (settings.token.empty()) settings.token_from.clear();
}

}  // namespace

std::string expand_path(const std::string& path, const Variables& variables) {
  std::string out;
  size_t at = 0;
  if (path == "~" || path.starts_with("~/")) {
    out = home_of(variables);
    at = 1;
  }
  while (at < path.size()) {
    if (path[at] != '$') {
      out += path[at++];
      continue;
    }
    const bool braces = at + 1 < path.size() && path[at + 1] == '{';
    const size_t begin = at + (braces ? 2 : 1);
    size_t end = begin;
    while (end < path.size() && is_name_char(path[end])) ++end;
    const bool closed = !braces || (end < path.size() && path[end] == '}');
    const auto value =
        end > begin && closed ? variables(path.substr(begin, end - begin)) : std::nullopt;
    const size_t next = end + (braces && closed ? 1 : 0);
    out += value ? *value : path.substr(at, next - at);
    at = next;
  }
  return out;
}

std::string clean_token(const std::string& token, const std::string& where) {
  constexpr const char* kSpace = " \t\r\n";
  const size_t begin = token.find_first_not_of(kSpace);
  if (begin == std::string::npos) return "";
  const std::string clean = token.substr(begin, token.find_last_not_of(kSpace) + 1 - begin);
  for (const char c : clean) {
    if (c > ' ' && c <= '~') continue;
    throw Error(Code::kInvalidArgument,
                fmt::format("the token of {} has a space, a control character or one beyond ASCII "
                            "in it; expected one like hf_...",
                            where));
  }
  return clean;
}

Variables environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

HubSettings read_hub_settings(const Variables& variables) {
  HubSettings settings;
  const std::string caches = variables("XDG_CACHE_HOME").value_or(home_of(variables) + "/.cache");
  const std::string hf_home =
      expand_path(variables("HF_HOME").value_or(caches + "/huggingface"), variables);
  const std::string older = variables("HUGGINGFACE_HUB_CACHE").value_or(hf_home + "/hub");
  settings.cache_dir = expand_path(variables("HF_HUB_CACHE").value_or(older), variables);
  settings.no_home = why_no_home(variables);
  settings.endpoint = read_endpoint(variables);
  const std::string offline = or_empty(variables("HF_HUB_OFFLINE"));
  settings.offline = is_true(offline.empty() ? variables("TRANSFORMERS_OFFLINE") : offline);
  settings.stall_timeout_s = read_timeout(variables);
  for (const char* name : {"REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
    if (settings.ca_file.empty()) settings.ca_file = or_empty(variables(name));
  }
  read_token(variables, hf_home, settings);
  return settings;
}

}  // namespace tgi::download
