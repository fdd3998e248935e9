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

// Whether transformers leaves the module as it was for one of these names, as
// modules_to_not_convert has them. To version 5 a name is the first parts of a module's, also as a
// pattern, or its end; to version 4 any parts of it. Names of a text model within another
// ("model.language_model.layers.0") are its own too. Throws as matches_target does.
bool is_left_plain(std::span<const std::string> names, std::string_view module);

// Throws kInvalidArgument for a name among them that is no pattern.
void check_left_plain(std::span<const std::string> names);

// "model.layers.0" of "model.language_model.layers.0": text models within others are named from the
// outermost on there, and by themselves here.
std::string without_outer(std::string name);

// Whether the whole name is what a pattern as of file names says: '*' stands for any characters,
// dots too, '?' for any one.
bool matches_wildcards(std::string_view pattern, std::string_view module);

// As compressed-tensors means it: the module's name, or "re:" and a pattern that matches from its
// start on. Throws kInvalidArgument for a pattern that is none, or that takes too long.
bool matches_target(const std::string& target, std::string_view module);

}  // namespace tgi
