#include "engine/guide/lark_json.h"

#include <string>

#include "base/bounded_json.h"
#include "base/json_syntax.h"

namespace tgi::guide {

using nlohmann::ordered_json;

std::string_view take_json(SourceText& source) {
  const size_t begin = source.at;
  for (const std::string_view word : {"true", "false"})
    if (source.take(word)) return source.text.substr(begin, word.size());
  if (source.peek() != '{' && source.peek() != '[')
    source.refuse("expected \"{\", \"[\", true or false");
  int32_t depth = 0;
  bool in_string = false;
  while (!source.at_end()) {
    const char c = source.peek();
    ++source.at;
    if (in_string) {
      if (c == '\\') ++source.at;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxLarkJsonNesting) {
        source.refuse(begin,
                      "JSON that is nested deeper than " + std::to_string(kMaxLarkJsonNesting),
                      Code::kInvalidArgument);
      }
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return source.text.substr(begin, source.at - begin);
    }
  }
  source.refuse(begin, "JSON without its end", Code::kInvalidArgument);
}

ordered_json parse_json_at(const SourceText& source, std::string_view text) {
  ordered_json json = json_or_discarded(text, kMaxLarkJsonNesting);
  if (json.is_discarded()) {
    source.refuse(static_cast<size_t>(text.data() - source.text.data()),
                  json_syntax_error(text).what(), Code::kInvalidArgument);
  }
  return json;
}

void take_llguidance_options(SourceText& source, LlguidanceOptions& options) {
  const size_t begin = source.at;
  const ordered_json json = parse_json_at(source, take_json(source));
  if (!json.is_object())
    source.refuse(begin, "expected an object of options", Code::kInvalidArgument);
  for (const auto& [name, value] : json.items()) {
    if (name == "skip_repetition") {
      options.skips_once = value == "once";
      if (options.skips_once) continue;
      source.refuse(begin, "expected \"once\" for \"" + name + "\", got " + value.dump(),
                    Code::kInvalidArgument);
    }
    // How it works, and what it prints: the answers are the same.
    const bool is_harmless =
        name == "no_forcing" || name == "verbose_errors" || name == "test_trace";
    if (!is_harmless && name != "allow_initial_skip" && name != "ignore_once") {
      source.refuse(begin,
                    "the option \"" + name + "\" of %llguidance isn't supported; " +
                        "allow_initial_skip, ignore_once and no_forcing are",
                    Code::kUnsupported);
    }
    if (!value.is_boolean()) {
      source.refuse(begin, "expected true or false for \"" + name + "\", got " + value.dump(),
                    Code::kInvalidArgument);
    }
    if (name == "allow_initial_skip") options.allow_initial_skip = value.get<bool>();
    if (name == "ignore_once") options.skips_once = value.get<bool>();
  }
}

}  // namespace tgi::guide
