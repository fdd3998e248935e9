// What a model is and what it would need, from its files alone: nothing is loaded and no memory of
// its size taken. The arithmetic is that of loading (plan_weight_bytes, Device::kv_bytes).
#pragma once

#include <string>

#include "engine/runtime/served_model.h"
#include "ipc/model_facts.h"

namespace tgi {

// For one sequence on the cpu backend at the dtypes f32, bf16, int8 and int4 (a quantised
// checkpoint: as it is), with as many slots and rows of a step as `options` says; options.model
// names the folder, or is "demo". What a dtype, the weights or the template can't do is told in the
// result. Throws kNotFound without config.json, kInvalidArgument for a bad one, and kUnsupported
// for an architecture that is not known.
ipc::ModelFacts inspect_model(const ModelOptions& options);

// Whether the folder (or "demo") holds an adapter, and no model beside it.
bool holds_adapter(const std::string& model);

// What an adapter says of itself; no model is needed for it. Throws as read_adapter_config.
ipc::AdapterFolder inspect_adapter(const std::string& folder);

}  // namespace tgi
