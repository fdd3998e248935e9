// What a model's preset says for requests that leave it out (base/files/preset.h): parameters one
// by one, a system prompt, the messages that a conversation begins with. Where neither says how
// tokens are drawn, the API that the request came by does (ipc::SamplingDefaults). And what it says
// for a load that leaves it out.
#pragma once

#include <optional>
#include <string>

#include "base/files/preset.h"
#include "engine/model/head_spec.h"
#include "ipc/model_settings.h"
#include "ipc/protocol.h"

namespace tgi {

// The request with all that; nothing where that is the request as it came. The preset may be null.
std::optional<ipc::GenerateRequest> with_defaults(const Preset* preset,
                                                  const ipc::GenerateRequest& asked);
std::optional<ipc::TokenizeParams> with_defaults(const Preset* preset,
                                                 const ipc::TokenizeParams& asked);

// What is given with a load goes before what its preset says.
void fill_settings(const Preset& preset, ipc::ModelSettings& to);

// Found out before weights are read, and not by the first request. `place` is where the preset is.
// Throws kUnsupported for a schema that can't be enforced, or of a model that writes no answers,
// and kInvalidArgument for what is no schema.
void check_preset_schema(const Preset& preset, Task task, const std::string& place);

}  // namespace tgi
