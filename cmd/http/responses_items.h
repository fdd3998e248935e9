// Items of /v1/responses: what a request gives is read into the form in which OpenAI lists it
// again, and a conversation of items becomes messages for a chat template.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "cmd/http/answer_parts.h"
#include "cmd/http/body_table.h"
#include "cmd/http/responses_tools.h"

namespace tgi::http {

// The item that another one refers to; nothing where it is not known.
using FindItem = std::function<std::optional<OrderedJson>(const std::string& id)>;

// A text, or a list of items: messages, calls of functions and their outputs, reasoning,
// references. Each gets an id where it has none. Throws for what is no such item, with its path
// from `input` on.
OrderedJson read_items(const OrderedJson& input, const FindItem& find);

// Messages of /v1/chat/completions: `instructions` and the system's messages at the beginning are
// one, and what the assistant thought, said and called in one go is one message too. Throws for an
// output of a call that is not there.
OrderedJson messages_of_items(const std::optional<std::string>& instructions,
                              const OrderedJson& items);

// The item that tells a part of an answer. `status`: in_progress, completed or incomplete.
OrderedJson item_of_part(const AnswerPart& part,
                         const std::string& id,
                         std::string_view status,
                         int64_t num_top_logprobs,
                         bool tells_encrypted,
                         const ToolNames& tool_names);
// Of the id of such an item: rs, msg, fc.
std::string_view id_prefix(PartKind kind);

// Its part of content: of reasoning or a text.
OrderedJson content_of_part(const AnswerPart& part, int64_t num_top_logprobs);

}  // namespace tgi::http
