// The tools of `tgi chat --tools FILE`.
#pragma once

#include <string>
#include <vector>

#include "ipc/protocol.h"

namespace tgi {

// A JSON list of tools in OpenAI's shape, or of their functions alone; an object with such a list
// as its `tools` will do. Throws kInvalidArgument or kNotFound naming the file.
ipc::OrderedJson read_tools(const std::string& path);

// The message in which the model called.
ipc::OrderedJson message_with_calls(const std::string& text,
                                    const std::vector<ipc::ToolCall>& calls);

// What the tool said, for the model.
ipc::OrderedJson message_of_result(const ipc::ToolCall& call, const std::string& result);

// One line: {"id": ..., "name": ..., "arguments": {...}}
std::string call_line(const ipc::ToolCall& call);

}  // namespace tgi
