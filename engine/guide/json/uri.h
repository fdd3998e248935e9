// References between schemas: URIs resolved against each other. Source: RFC 3986, section 5.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace tgi::guide {

// The part before '#', and what is behind it; an empty fragment is none.
std::pair<std::string_view, std::string_view> split_fragment(std::string_view uri);

// REQUIRES: no fragments. With an empty base the reference itself.
std::string resolve_uri(std::string_view base, std::string_view reference);

// "%25" as "%". A '%' without two digits stays as it is.
std::string percent_decoded(std::string_view text);

}  // namespace tgi::guide
