// A matcher that reads bytes: a vocabulary in which every byte is a token.
#pragma once

#include <memory>
#include <string_view>

#include "engine/guide/compiled_grammar.h"
#include "engine/guide/vocabulary.h"

namespace tgi::guide {

std::shared_ptr<const Vocabulary> byte_vocabulary();

// Whether the text is one of the grammar, byte by byte; every byte that is taken must be allowed
// too.
bool accepts_bytes(const std::shared_ptr<const CompiledGrammar>& grammar, std::string_view text);

}  // namespace tgi::guide
