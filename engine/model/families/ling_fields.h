// What the published files of Ling, and of models made like it, say beside the fields of their
// classes in `transformers`.
#pragma once

#include <array>
#include <string_view>

#include "engine/model/known_fields.h"

namespace tgi {

inline constexpr std::string_view kLingBlock = "there is one kind of block";

inline constexpr auto kLingFields = std::to_array<KnownField>({
    harmless("num_nextn_predict_layers", kOnlyDrafts),
    harmless("output_dropout", kOnlyTraining),
    harmless("router_dtype", "logits of routers are f32"),
    harmless("moe_shared_expert_intermediate_size", "the shared experts are as wide as the others"),
    harmless_if("moe_router_enable_expert_bias", "[true]", "experts are chosen with a bias"),
    harmless_if("score_function", R"(["sigmoid"])", "scores are sigmoids"),
    harmless_if("use_bias", "[false]", "there are no biases of o and the MLP"),
    harmless_if("use_rmsnorm", "[true]", kLingBlock),
    harmless_if("norm_head", "[false]", kLingBlock),
    harmless_if("use_sliding_window", "[false]", "every layer sees all tokens"),
    harmless("max_window_layers", "is read with use_sliding_window only"),
});

}  // namespace tgi
