// The JSON that the protocol is made of.
#pragma once

#include "base/nlohmann_json.h"

namespace tgi::ipc {

using OrderedJson = nlohmann::ordered_json;  // keeps the member order of messages and tools

}  // namespace tgi::ipc
