// The JSON library, of which what most sources would compile for themselves (a tenth of the
// compiler's time) is compiled once, in nlohmann_json.cc.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace tgi::json_parts {

using Map = nlohmann::json;
using Ordered = nlohmann::ordered_json;
// Where texts are read from: a std::string_view, a std::string.
using Characters = nlohmann::detail::iterator_input_adapter<const char*>;
using String = nlohmann::detail::iterator_input_adapter<std::string::const_iterator>;

}  // namespace tgi::json_parts

#define TGI_JSON_PARTS(declared, AnyJson)                                        \
  declared class nlohmann::detail::serializer<AnyJson>;                          \
  declared class nlohmann::detail::lexer<AnyJson, tgi::json_parts::Characters>;  \
  declared class nlohmann::detail::lexer<AnyJson, tgi::json_parts::String>;      \
  declared class nlohmann::detail::parser<AnyJson, tgi::json_parts::Characters>; \
  declared class nlohmann::detail::parser<AnyJson, tgi::json_parts::String>

extern template class nlohmann::basic_json<>;
extern template class nlohmann::basic_json<nlohmann::ordered_map>;
TGI_JSON_PARTS(extern template, tgi::json_parts::Map);
TGI_JSON_PARTS(extern template, tgi::json_parts::Ordered);
