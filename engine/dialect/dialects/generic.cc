// Of templates that tell the model nothing of tools: the prompt asks for an object.
#include "engine/dialect/dialects/shows.h"

namespace tgi::dialect {

template <>
const ToolDialect& tool_dialect<"generic">() {
  static constexpr ToolDialect kThis{
      .name = "generic",
      .syntax = {.call = {object("name", "arguments")},
                 .separator = {gap()},
                 .place = CallPlace::kWholeAnswer},
      .speaks = nullptr,
  };
  return kThis;
}

}  // namespace tgi::dialect
