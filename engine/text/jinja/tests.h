// The tests of the language: what may stand behind `is`, and in select, reject and their kin.
#pragma once

#include <string_view>

#include "engine/text/jinja/builtin.h"

namespace tgi::jinja {

// Null when there is none called so.
const Builtin* find_test(std::string_view name);

}  // namespace tgi::jinja
