// How quantisation configs name modules: as they are, by a part of the path, or by a pattern.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tgi {

// Whether `key` is the module's name or a run of whole parts of it: "lm_head", "mlp.gate",
// "model.layers.3" of "model.layers.3.mlp.gate". A part "*" of the key is any: "layers.*.mlp".
bool is_part_of_module(std::string_view key, std::string_view module);

// Whether any of the keys is.
bool any_is_part_of_module(std::span<const std::string> keys, std::string_view module);

// Whether the whole name is what a pattern as of file names says: '*' stands for any characters,
// dots too, '?' for any one.
bool matches_wildcards(std::string_view pattern, std::string_view module);

// As compressed-tensors means it: the module's name, or "re:" and a pattern that matches from its
// start on. Throws kInvalidArgument for a pattern that is none, or that takes too long.
bool matches_target(const std::string& target, std::string_view module);

}  // namespace tgi
