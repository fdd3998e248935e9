// What the grammar of answers takes, in a vocabulary of bytes and the marks of all dialects.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "engine/dialect/answer_grammar.h"
#include "engine/guide/compiled_grammar.h"
#include "engine/guide/vocabulary.h"

namespace tgi::dialect {

inline constexpr int32_t kAnswerEnd = 256;  // behind the bytes

// Every byte is a token, and every special token of the dialects' marks.
std::shared_ptr<const guide::Vocabulary> vocabulary();

std::shared_ptr<const guide::CompiledGrammar> compiled(const AnswerForm& form);

// Whether this may be a whole answer.
bool takes(const std::shared_ptr<const guide::CompiledGrammar>& grammar, std::string_view text);

// An answer that the grammar lets through, drawn token by token.
std::string random_answer(const std::shared_ptr<const guide::CompiledGrammar>& grammar,
                          std::mt19937& random);

// Tools "book", "book_all" and "ping".
const OrderedJson& book_tools();

}  // namespace tgi::dialect
