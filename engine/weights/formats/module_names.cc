#include "engine/weights/formats/module_names.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"

namespace tgi {
namespace {

constexpr std::string_view kOuter = "language_model.";

// Far more than a name needs; a pattern that backtracks without end stops here.
constexpr uint32_t kMatchLimit = 100'000;

struct FreePcre {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

[[noreturn]] void fail_pattern(std::string_view pattern, int error) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(error, text, sizeof text);
  throw Error(Code::kInvalidArgument, fmt::format("quantization_config: pattern \"{}\": {}",
                                                  pattern, reinterpret_cast<const char*>(text)));
}

// One name of a config is asked about every module: patterns are compiled once.
const pcre2_code* compiled(std::string_view pattern) {
  constexpr size_t kMaxKept = 1024;
  thread_local std::map<std::string, std::unique_ptr<pcre2_code, FreePcre>, std::less<>> kept;
  const auto found = kept.find(pattern);
  if (found != kept.end()) return found->second.get();
  int error = 0;
  PCRE2_SIZE offset = 0;
  std::unique_ptr<pcre2_code, FreePcre> code(pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
      PCRE2_ANCHORED | PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr));
  if (code == nullptr) fail_pattern(pattern, error);
  if (kept.size() >= kMaxKept) kept.clear();
  return kept.emplace(pattern, std::move(code)).first->second.get();
}

bool matches_pattern(std::string_view pattern, std::string_view text) {
  const pcre2_code* const code = compiled(pattern);
  const std::unique_ptr<pcre2_match_data, FreePcre> data(
      pcre2_match_data_create_from_pattern(code, nullptr));
  const std::unique_ptr<pcre2_match_context, FreePcre> context(pcre2_match_context_create(nullptr));
  if (data == nullptr || context == nullptr) {
    throw Error(Code::kOutOfMemory, "no memory to match a pattern");
  }
  pcre2_set_match_limit(context.get(), kMatchLimit);
  const int result = pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0, 0,
                                 data.get(), context.get());
  if (result < 0 && result != PCRE2_ERROR_NOMATCH) fail_pattern(pattern, result);
  return result >= 0;
}

std::vector<std::string_view> parts_of(std::string_view path) {
  std::vector<std::string_view> out;
  for (size_t dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.')) {
    out.push_back(path.substr(0, dot));
    path.remove_prefix(dot + 1);
  }
  out.push_back(path);
  return out;
}

// Most names are no pattern, but for their dots: those need no look at every module.
bool is_pattern(std::string_view name) {
  return name.find_first_of("*+?[](){}|^$\\") != std::string_view::npos;
}

// transformers ends a name where a part of the module's ends.
std::string pattern_of_parts(std::string_view name) {
  return fmt::format(R"((?:{})(?:(?<=\.)|(?=\.|$)))", name);
}

bool names_module(std::string_view name, std::string_view module) {
  if (name.empty()) return false;
  if (is_part_of_module(name, module) || module.ends_with(name)) return true;
  return is_pattern(name) && matches_pattern(pattern_of_parts(name), module);
}

}  // namespace

bool is_part_of_module(std::string_view key, std::string_view module) {
  const std::vector<std::string_view> wanted = parts_of(key);
  const std::vector<std::string_view> parts = parts_of(module);
  const auto found = std::search(
      parts.begin(), parts.end(), wanted.begin(), wanted.end(),
      [](std::string_view part, std::string_view any) { return any == "*" || part == any; });
  return !key.empty() && found != parts.end();
}

bool any_is_part_of_module(std::span<const std::string> keys, std::string_view module) {
  return std::ranges::any_of(
      keys, [&](const std::string& key) { return is_part_of_module(key, module); });
}

bool is_left_plain(std::span<const std::string> names, std::string_view module) {
  return std::ranges::any_of(names, [&](const std::string& name) {
    return names_module(name, module) ||
           (name.find(kOuter) != std::string::npos && names_module(without_outer(name), module));
  });
}

void check_left_plain(std::span<const std::string> names) {
  for (const std::string& name : names) {
    if (is_pattern(name)) (void)compiled(pattern_of_parts(name));
  }
}

std::string without_outer(std::string name) {
  const size_t at = name.find(kOuter);
  if (at != std::string::npos && (at == 0 || name[at - 1] == '.')) name.erase(at, kOuter.size());
  return name;
}

bool matches_wildcards(std::string_view pattern, std::string_view module) {
  size_t at = 0;                         // in the pattern
  size_t star = std::string_view::npos;  // behind the last '*' that was met
  size_t taken = 0;                      // of the module, by what is before `star`
  for (size_t i = 0; i < module.size();) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = ++at;
      taken = i;
    } else if (at < pattern.size() && (pattern[at] == '?' || pattern[at] == module[i])) {
      ++at;
      ++i;
    } else if (star != std::string_view::npos) {
      at = star;
      i = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == std::string_view::npos;
}

bool matches_target(const std::string& target, std::string_view module) {
  constexpr std::string_view kPattern = "re:";
  if (!target.starts_with(kPattern)) return target == module;
  return matches_pattern(std::string_view(target).substr(kPattern.size()), module);
}

}  // namespace tgi
