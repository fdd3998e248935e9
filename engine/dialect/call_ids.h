// Ids of calls, in the forms that templates insist on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/dialect/dialect.h"

namespace tgi::dialect {

// `number`: the one that the model wrote, empty where it writes none; else `index` takes its place.
std::string make_call_id(CallIds form,
                         std::string_view name,
                         std::string_view number,
                         int64_t index);

}  // namespace tgi::dialect
