#include "engine/guide/common_masks.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/nlohmann_json.h"
#include "engine/guide/gbnf.h"
#include "engine/guide/json_schema.h"
#include "engine/guide/matcher.h"

namespace tgi::guide {
namespace {

// Texts are followed byte by byte with a mask before each.
struct CommonSchema {
  std::string_view schema;
  std::string_view text;
};
constexpr CommonSchema kSchemas[] = {
    {R"({})", R"({"ab":[-10.25e-7,"a\u00e9 \n",true,false,null,[],{}],"c":1})"},
    {R"({"type": "object", "properties": {"s": {"type": "string", "maxLength": 100},
         "i": {"type": "integer"}, "n": {"type": "number"}, "t": {"type": ["string", "null"]}},
         "required": ["s", "i", "n", "t"]})",
     R"({"s":"a\u00e9 \n","i":-10,"n":-10.25e-7,"t":"ab"})"},
    {R"({"type": "object", "properties": {"s": {"type": "string", "minLength": 1}},
         "additionalProperties": {"type": "string"}})",
     R"({"s":"ab","c":"d"})"},
};

struct CommonGrammar {
  std::string_view grammar;
  std::string_view text;
};
constexpr CommonGrammar kGrammars[] = {
    // As the examples of llama.cpp write it.
    {R"(root ::= string | "[" string ("," ws string)* "]"
string ::= "\"" ([^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}))* "\"" ws
ws ::= | " " | "\n" [ \t]{0,20}
)",
     R"(["a\n", "a"])"},
    {"root ::= [^\\n]* \"\\n\"\n", "a\n"},
    {"root ::= [^\"]* \"\\\"\"\n", "a\""},
    {"root ::= [a-zA-Z_] [a-zA-Z0-9_]* \";\"\n", "aB1;"},
};

void follow(Grammar& grammar,
            std::string_view text,
            const std::shared_ptr<const Vocabulary>& vocabulary) {
  Matcher matcher(compile_grammar(grammar), vocabulary);
  std::vector<uint32_t> mask((static_cast<size_t>(vocabulary->size()) + 31) / 32);
  for (size_t at = 0; at < text.size(); ++at) {
    matcher.fill_mask(mask);
    // A vocabulary without a token for this byte writes such texts in other ways.
    const auto [length, token] = vocabulary->longest_prefix(text.substr(at, 1));
    if (length == 0 || !matcher.accept(token)) return;
  }
  matcher.fill_mask(mask);
}

}  // namespace

void make_common_masks(const std::shared_ptr<const Vocabulary>& vocabulary) {
  for (const auto whitespace :
       {JsonSchemaOptions::Whitespace::kCompact, JsonSchemaOptions::Whitespace::kFlexible}) {
    JsonSchemaOptions options;
    options.whitespace = whitespace;
    for (const CommonSchema& common : kSchemas) {
      Grammar grammar;
      const auto schema = nlohmann::ordered_json::parse(common.schema);
      grammar.set_start(add_json_schema(grammar, schema, options));
      follow(grammar, common.text, vocabulary);
    }
  }
  for (const CommonGrammar& common : kGrammars) {
    Grammar grammar;
    grammar.set_start(add_gbnf(grammar, common.grammar));
    follow(grammar, common.text, vocabulary);
  }
}

}  // namespace tgi::guide
