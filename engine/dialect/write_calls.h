// Calls as the model itself would have written them, for templates that show none.
#pragma once

#include <string>
#include <vector>

#include "engine/dialect/call_syntax.h"
#include "engine/dialect/tools.h"

namespace tgi::dialect {

struct PastCall {
  std::string name;
  OrderedJson arguments;  // an object
};

std::string write_calls(const CallSyntax& syntax, const std::vector<PastCall>& calls);

}  // namespace tgi::dialect
