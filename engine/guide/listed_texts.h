// Long lists of texts as one expression: an `enum`, the choices of a request.
#pragma once

#include <span>
#include <string>

#include "engine/guide/regex.h"

namespace tgi::guide {

// The language of these texts. What several begin with is in it once, so that it grows with what
// tells them apart. REQUIRES: they are sorted and differ.
Regex any_of_texts(RegexPool& pool, std::span<const std::string> texts);

}  // namespace tgi::guide
