// Arguments that a tool's schema names elsewhere than in `properties`, for notations that write
// arguments one by one and have to know their names.
#pragma once

#include "engine/dialect/tools.h"

namespace tgi::dialect {

// The tool with a schema that lists its arguments. A root that is a reference is what it leads to,
// which has the same values. Of a tool that is not strict `properties` also gets what is named by
// the branches of "allOf", "anyOf" and the like, and `additionalProperties` what patterns of names
// say; what the branches demand of the arguments together is left open.
Tool with_listed_arguments(const Tool& tool);

}  // namespace tgi::dialect
