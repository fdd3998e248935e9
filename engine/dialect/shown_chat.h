// A conversation with tools as a template can show it: in the form that the template was written
// for, or, where it knows nothing of tools, as text.
#pragma once

#include <optional>
#include <string>

#include "engine/dialect/dialect.h"
#include "engine/dialect/tools.h"
#include "engine/text/chat_template.h"

namespace tgi::dialect {

// How a template takes tools; found by rendering a small conversation.
struct TemplateFacts {
  bool shows_tools = false;           // it reads `tools`
  bool shows_calls = false;           // of earlier turns
  bool takes_text_arguments = false;  // of earlier calls: as JSON in a text, not as an object
  bool takes_null_content = false;    // beside earlier calls: null, where others take ""
  bool needs_reasoning = false;       // of earlier answers: it fails where none is given
};
TemplateFacts template_facts(const ChatTemplate& chat_template);

struct ToolPrompt {
  const OrderedJson* tools = nullptr;        // checked; null: none are shown
  const std::string* tool_prompt = nullptr;  // (optional) of the client
  bool must_call = false;
};

struct ShownChat {
  OrderedJson messages;
  const OrderedJson* tools = nullptr;  // for the template
};

// Checked tools whose properties all have a description, if an empty one: for templates that fail
// without.
OrderedJson described(const OrderedJson& tools);

// Throws kInvalidArgument for tool_calls and results that are none, with the place.
ShownChat shown_chat(const OrderedJson& messages,
                     const ToolPrompt& prompt,
                     const TemplateFacts& facts,
                     const ToolDialect* dialect);

}  // namespace tgi::dialect
