// Images that a message names by their paths, as clients of models that see them take them.
#pragma once

#include <string_view>

namespace tgi {

// Throws kUnsupported with the first file of an image that the text names by a path (/..., ./...,
// ../... or ~/..., in quotes or not) and that is there: whoever writes it so expects it to be seen.
// `way_out`: what to do when the path itself is meant.
void refuse_images(std::string_view text, std::string_view way_out);

inline constexpr std::string_view kVerbatimInChat = "begin the message with //";

}  // namespace tgi
