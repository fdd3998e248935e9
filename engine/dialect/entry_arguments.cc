// The grammar of arguments in the notation of entry_scanner.h. A schema is followed as far as the
// notation and the words below go; of a strict tool any other word is refused with its place.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ascii.h"
#include "base/error.h"
#include "engine/dialect/arguments_grammar.h"
#include "engine/guide/regex.h"

namespace tgi::dialect {
namespace {

using guide::Expr;
using guide::Grammar;
using guide::Rule;

constexpr int kMaxSchemaDepth = 12;

class EntryGrammar {
 public:
  EntryGrammar(Grammar& grammar,
               const Tool& tool,
               std::string_view quote,
               const IsSpecialToken& is_special)
      : grammar_(grammar), tool_(tool), quote_(quote), is_special_(is_special) {
    const std::vector<MarkPiece> pieces = pieces_of(quote, is_special);
    if (!pieces.empty() && !pieces.front().is_special) quote_text_ = pieces.front().text;
  }

  // What stands between the brackets of an object.
  Expr members(const OrderedJson& schema, const std::string& path, int depth) {
    check_words(schema, path, {"type", "properties", "required", "additionalProperties", "strict"});
    std::vector<std::string> required;
    for (const OrderedJson& each : list_of(schema, "required")) {
      if (each.is_string()) required.push_back(each.get<std::string>());
    }
    std::vector<ListEntry> entries;
    const auto properties = schema.find("properties");
    const bool has_properties = properties != schema.end() && properties->is_object();
    if (has_properties) {
      for (const auto& item : properties->items()) {
        const Expr own =
            value(item.value(), fmt::format("{}/properties/{}", path, item.key()), depth + 1);
        entries.push_back({.name = item.key(),
                           .expr = named(grammar_.text(item.key()), own),
                           .is_required = std::find(required.begin(), required.end(), item.key()) !=
                                          required.end()});
      }
    }
    // As the templates sort them.
    std::stable_sort(entries.begin(), entries.end(), [](const ListEntry& a, const ListEntry& b) {
      return ascii_lower(a.name) < ascii_lower(b.name);
    });
    const auto others = schema.find("additionalProperties");
    std::optional<Expr> other;
    if (others != schema.end() && others->is_object()) {
      other = named(any_argument_name(grammar_),
                    value(*others, path + "/additionalProperties", depth + 1));
    } else if (others != schema.end() ? *others == OrderedJson(true) : !has_properties) {
      other = named(any_argument_name(grammar_), any());
    }
    return comma_list(grammar_, entries, other);
  }

 private:
  static const OrderedJson& list_of(const OrderedJson& schema, const char* word) {
    static const OrderedJson kEmpty = OrderedJson::array();
    const auto found = schema.find(word);
    return found != schema.end() && found->is_array() ? *found : kEmpty;
  }

  // Words that say nothing of what a value may be are taken everywhere.
  void check_words(const OrderedJson& schema,
                   const std::string& path,
                   std::initializer_list<std::string_view> known) const {
    constexpr std::array<std::string_view, 12> kAnnotations = {
        "description", "title",    "default", "examples", "example",    "$schema",
        "$id",         "$comment", "$defs",   "nullable", "deprecated", "definitions"};
    if (!tool_.strict) return;
    for (const auto& item : schema.items()) {
      const auto is_it = [&](std::string_view word) { return word == item.key(); };
      if (std::any_of(known.begin(), known.end(), is_it)) continue;
      if (std::any_of(kAnnotations.begin(), kAnnotations.end(), is_it)) continue;
      refuse(fmt::format("{}/{}", path, item.key()));
    }
  }
  [[noreturn]] void refuse(const std::string& path) const {
    throw Error(Code::kUnsupported,
                fmt::format("tool {}: {}: can't be enforced in the notation of this model",
                            tool_.name, path));
  }

  Expr value(const OrderedJson& given, const std::string& path, int depth) {
    const OrderedJson* const schema = behind_references(given, tool_.parameters);
    if (schema == nullptr || !schema->is_object() || depth > kMaxSchemaDepth) {
      if (tool_.strict && given != OrderedJson(true)) refuse(path);
      return any();
    }
    if (schema != &given) return referred(*schema, path, depth);
    for (const char* const word : {"enum", "const"}) {
      if (!schema->contains(word)) continue;
      const OrderedJson& all = (*schema)[word];
      std::vector<Expr> forms;
      for (const OrderedJson& each : all.is_array() ? all : OrderedJson::array({all})) {
        forms.push_back(literal(each));
      }
      return grammar_.either(forms);
    }
    for (const char* const word : {"anyOf", "oneOf"}) {
      const OrderedJson& all = list_of(*schema, word);
      if (all.empty()) continue;
      check_words(*schema, path, {"type", word});
      std::vector<Expr> forms;
      for (const OrderedJson& each : all) forms.push_back(value(each, path, depth + 1));
      return grammar_.either(forms);
    }
    const uint8_t types = types_of(*schema, tool_.parameters);
    if (types == kAllBits) {
      check_words(*schema, path, {"type"});
      return any();
    }
    std::vector<Expr> forms;
    if ((types & kStringBit) != 0) {
      forms.push_back(text_form(property_text(grammar_, tool_, path, *schema, quote_text_)));
    }
    if ((types & kNumberBit) != 0) forms.push_back(number(*schema));
    if ((types & kBooleanBit) != 0) {
      forms.push_back(grammar_.either({grammar_.text("true"), grammar_.text("false")}));
    }
    if ((types & kNullBit) != 0) forms.push_back(grammar_.text("null"));
    if ((types & kArrayBit) != 0) forms.push_back(array(*schema, path, depth));
    if ((types & kObjectBit) != 0) forms.push_back(in('{', members(*schema, path, depth), '}'));
    return grammar_.either(forms);
  }

  // One rule for each schema that is referred to, which may be its own part.
  Expr referred(const OrderedJson& schema, const std::string& path, int depth) {
    const auto found = referred_.find(&schema);
    if (found != referred_.end()) return grammar_.call(found->second);
    const Rule rule = grammar_.declare(path);
    referred_.emplace(&schema, rule);
    grammar_.define(rule, value(schema, path, depth + 1));
    return grammar_.call(rule);
  }

  Expr number(const OrderedJson& schema) {
    OrderedJson out = OrderedJson::object();
    const auto type = schema.find("type");
    const bool is_integer =
        type != schema.end() &&
        (*type == "integer" ||
         (type->is_array() &&
          std::find(type->begin(), type->end(), OrderedJson("integer")) != type->end() &&
          std::find(type->begin(), type->end(), OrderedJson("number")) == type->end()));
    out["type"] = is_integer ? "integer" : "number";
    for (const char* const word :
         {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}) {
      if (schema.contains(word)) out[word] = schema[word];
    }
    return json_value(grammar_, tool_, out);
  }

  Expr array(const OrderedJson& schema, const std::string& path, int depth) {
    check_words(schema, path, {"type", "items", "minItems", "maxItems"});
    constexpr uint64_t kMost = 10000;
    const auto count = [&](const char* word, int32_t other) {
      const auto found = schema.find(word);
      return found != schema.end() && found->is_number_unsigned()
                 ? static_cast<int32_t>(std::min(found->get<uint64_t>(), kMost))
                 : other;
    };
    const int32_t least = count("minItems", 0);
    const int32_t most = count("maxItems", guide::kUnbounded);
    if (most == 0) return grammar_.text("[]");
    const auto items = schema.find("items");
    const Expr one = items != schema.end() ? value(*items, path + "/items", depth + 1) : any();
    const Rule rule = grammar_.declare("item");
    grammar_.define(rule, one);
    const Expr item = grammar_.call(rule);
    const Expr rest = grammar_.repeat(grammar_.sequence({comma(), item}), std::max(least - 1, 0),
                                      most == guide::kUnbounded ? most : most - 1);
    const Expr some = grammar_.sequence({item, rest});
    return in('[', least > 0 ? some : grammar_.optional(some), ']');
  }

  Expr literal(const OrderedJson& value) {
    if (value.is_string()) return text_form(grammar_.text(value.get<std::string>()));
    if (!value.is_array() && !value.is_object()) return grammar_.text(value.dump());
    std::vector<ListEntry> entries;
    for (const auto& item : value.items()) {
      Expr own = literal(item.value());
      if (value.is_object()) own = named(grammar_.text(item.key()), own);
      entries.push_back({.name = item.key(), .expr = own});
    }
    const Expr inside = comma_list(grammar_, entries, std::nullopt);
    return value.is_object() ? in('{', inside, '}') : in('[', inside, ']');
  }

  // Any value of the notation.
  Expr any() {
    if (!any_) {
      any_ = grammar_.declare("value");
      const Expr value = grammar_.call(*any_);
      const Expr text = text_form(text_without(grammar_, quote_, is_special_));
      const Expr number = grammar_.terminal(parse_regex(
          grammar_.regex(), "-?(0|[1-9][0-9]{0,17})(\\.[0-9]{1,17})?", guide::RegexUse::kWhole));
      grammar_.define(
          *any_,
          grammar_.either(
              {text, number, grammar_.text("true"), grammar_.text("false"), grammar_.text("null"),
               in('[', comma_list(grammar_, {}, value), ']'),
               in('{', comma_list(grammar_, {}, named(any_argument_name(grammar_), value)), '}')}));
    }
    return grammar_.call(*any_);
  }

  Expr comma() { return grammar_.sequence({grammar_.text(","), optional_space(grammar_)}); }
  Expr named(Expr name, Expr value) {
    return grammar_.sequence({name, grammar_.text(":"), optional_space(grammar_), value});
  }
  Expr in(char open, Expr inside, char close) {
    return grammar_.sequence(
        {grammar_.text(std::string(1, open)), inside, grammar_.text(std::string(1, close))});
  }
  Expr text_form(Expr text) {
    const Expr mark = written_mark(grammar_, quote_, is_special_);
    return grammar_.sequence({mark, text, mark});
  }

  Grammar& grammar_;
  const Tool& tool_;
  const std::string_view quote_;
  const IsSpecialToken& is_special_;
  std::string quote_text_;  // where it is no special token
  std::optional<Rule> any_;
  std::map<const OrderedJson*, Rule> referred_;
};

}  // namespace

Expr entry_arguments(Grammar& grammar,
                     const Tool& tool,
                     const CallPart& part,
                     const IsSpecialToken& is_special) {
  return EntryGrammar(grammar, tool, part.close, is_special).members(tool.parameters, "#", 0);
}

}  // namespace tgi::dialect
