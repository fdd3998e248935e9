// What the quantised formats share in reading quantization_config: the fields in which tools write
// down how a checkpoint was made, names that are spelled in several ways, and the tensors for
// activations that nobody reads.
//
// A format's own fields are a table in its file. A field that neither table knows is refused by
// name: it may change what the stored numbers mean.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/known_fields.h"
#include "engine/weights/checkpoint.h"

namespace tgi {

inline constexpr std::string_view kActivationsReason =
    "activations are rounded as the device's kernels do it";

// The quantization_config of a config. Throws kInvalidArgument when there is none.
inline JsonReader quantization_of(const JsonReader& config) {
  return config.object("quantization_config");
}
inline JsonReader quantization_of(const Json& config) {
  return quantization_of(JsonReader(config, ""));
}

// The method of a quantization_config; empty without one.
std::string quant_method_of(const JsonReader& config);

// Throws kUnsupported naming the members of `quantization` that neither `own` nor the table of how
// checkpoints are made knows, or a known one with a value that can't be loaded.
void check_quantization(const JsonReader& quantization,
                        std::span<const KnownField> own,
                        std::string_view method);

// The same for an object within quantization_config, to which only `own` applies.
void check_quantization_part(const JsonReader& part,
                             std::span<const KnownField> own,
                             std::string_view what);

// may_ignore of formats whose checkpoints hold scales and zero points of activations or of the KV
// cache, which are not rounded by them here.
bool is_activation_scale(const Checkpoint& checkpoint, const StoredTensor& tensor);

}  // namespace tgi
