// The members of a body that say what the text of an answer has to be, in the spellings of TGI and
// LoRAX (grammar, response_format), OpenAI (response_format), vLLM (guided_*, structured_outputs),
// SGLang (regex, ebnf) and llama.cpp (grammar as a text, json_schema). At most one of them may be
// given.
#pragma once

#include <optional>

#include "cmd/http/body_table.h"
#include "ipc/protocol.h"

namespace tgi::http {

struct GuideFields {
  std::optional<OrderedJson> grammar;
  std::optional<OrderedJson> response_format;
  std::optional<OrderedJson> json_schema;
  std::optional<OrderedJson> guided_json;
  std::optional<OrderedJson> guided_regex;
  std::optional<OrderedJson> guided_choice;
  std::optional<OrderedJson> guided_grammar;
  std::optional<OrderedJson> structured_outputs;
  std::optional<OrderedJson> regex;
  std::optional<OrderedJson> ebnf;
};

// What they ask for; nothing when they ask for plain text. Whether a schema, pattern or grammar is
// one is seen by the daemon. Throws 422 for what none of these servers knows, and for every request
// when `is_supported` is false and something is asked.
std::optional<ipc::GuideParams> guide_of(const GuideFields& fields, bool is_supported);

}  // namespace tgi::http
