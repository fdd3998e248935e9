// The masks that many grammars share, made before the first request needs them.
#pragma once

#include <memory>

#include "engine/guide/vocabulary.h"

namespace tgi::guide {

// Walks the vocabulary with the strings, names, numbers and white space of JSON and with free text,
// and keeps what is found with it. For when a model is loaded: some tens of milliseconds.
void make_common_masks(const std::shared_ptr<const Vocabulary>& vocabulary);

}  // namespace tgi::guide
