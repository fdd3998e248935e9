// What a model's preset says for requests that leave it out (base/files/preset.h): parameters one
// by one, a system prompt, the messages that a conversation begins with. Where neither says how
// tokens are drawn, the API that the request came by does (ipc::SamplingDefaults).
#pragma once

#include <optional>

#include "base/files/preset.h"
#include "ipc/protocol.h"

namespace tgi {

// The request with all that; nothing where that is the request as it came. The preset may be null.
std::optional<ipc::GenerateRequest> with_defaults(const Preset* preset,
                                                  const ipc::GenerateRequest& asked);
std::optional<ipc::TokenizeParams> with_defaults(const Preset* preset,
                                                 const ipc::TokenizeParams& asked);

}  // namespace tgi
