#include "cmd/guide_flags.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "cmd/output.h"
#include "cmd/session.h"

namespace tgi {
namespace {

using ipc::OrderedJson;

std::string shown_source(const std::string& path) {
  return path == "-" ? "standard input" : path;
}

OrderedJson read_schema(const std::string& path) {
  const std::string text = read_document(path);
  try {
    return ipc::parse_json(text);
  } catch (const Error& error) {
    throw error.in(shown_source(path) + ": the schema");
  }
}

ipc::GuideParams by_schema(const GuideFlags& flags) {
  const std::string& path = *flags.schema;
  const OrderedJson schema = read_schema(path);
  ipc::GuideParams out;
  if (schema == OrderedJson(true)) {
    out.json_schema = OrderedJson::object();
  } else if (schema.is_object()) {
    out.json_schema = schema;
  } else {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected a JSON schema, which is an object, got {}",
                            shown_source(path), schema.type_name()));
  }
  out.flexible_whitespace = flags.flexible_whitespace;
  return out;
}

ipc::GuideParams by_grammar(const std::string& path) {
  ipc::GuideParams out;
  std::string text = read_document(path);
  if (const size_t valid = valid_utf8_prefix(text); valid != text.size()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: the grammar is not valid UTF-8 at its byte {} (of {})",
                            shown_source(path), valid, text.size()));
  }
  ipc::set_grammar(out, std::move(text));
  return out;
}

// "a,b\,c": a, and b,c.
std::vector<std::string> split_choices(const std::vector<std::string>& given) {
  std::vector<std::string> out;
  for (const std::string& list : given) {
    out.emplace_back();
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i] == ',') {
        out.emplace_back();
      } else if (list.compare(i, 2, "\\,") == 0) {
        out.back() += list[++i];
      } else {
        out.back() += list[i];
      }
    }
  }
  for (const std::string& text : out) {
    if (text.empty())
      throw UsageError("--choice: expected texts with commas between, got an empty one");
  }
  return out;
}

}  // namespace

void add_guide_flags(CLI::App& app, GuideFlags& flags) {
  constexpr const char* kGroup = "Form of the answer";
  app.add_option("--schema", flags.schema,
                 "the answer is JSON that satisfies the JSON schema in this file; - reads it from "
                 "standard input")
      ->type_name("FILE")
      ->group(kGroup);
  app.add_option("--regex", flags.regex, "the whole answer matches this regular expression")
      ->type_name("PATTERN")
      ->group(kGroup);
  app.add_option("--grammar", flags.grammar,
                 "the answer is a text of the grammar in this file, written in GBNF or Lark; - "
                 "reads it from standard input")
      ->type_name("FILE")
      ->group(kGroup);
  app.add_option(
         "--choice", flags.choices,
         "the answer is one of these texts, separated by commas (\\, is a comma of a text); "
         "may be given several times")
      ->type_name("TEXT,...")
      ->allow_extra_args(false)
      ->group(kGroup);
  app.add_flag("--flexible-whitespace", flags.flexible_whitespace,
               "with --schema: blanks and line ends may stand between the parts of the JSON; "
               "default: none")
      ->group(kGroup);
}

std::optional<ipc::GuideParams> to_guide(const GuideFlags& flags) {
  const int num_given = int{flags.schema.has_value()} + int{flags.regex.has_value()} +
                        int{flags.grammar.has_value()} + int{!flags.choices.empty()};
  if (num_given > 1) {
    throw UsageError(
        "--schema, --regex, --grammar and --choice each say what the answer has to be; give one of "
        "them");
  }
  if (flags.flexible_whitespace && !flags.schema)
    throw UsageError("--flexible-whitespace only goes with --schema");
  if (flags.schema) return by_schema(flags);
  if (flags.grammar) return by_grammar(*flags.grammar);
  if (num_given == 0) return std::nullopt;
  ipc::GuideParams out;
  if (flags.regex) out.regex = *flags.regex;
  out.choice = split_choices(flags.choices);
  return out;
}

}  // namespace tgi
