#include "engine/guide/compiled_grammar.h"

#include <algorithm>

#include "engine/guide/grammar_program.h"
#include "engine/guide/machine.h"

namespace tgi::guide {

CompiledGrammar::CompiledGrammar(std::unique_ptr<GrammarProgram> program)
    : program_(std::move(program)) {}
CompiledGrammar::~CompiledGrammar() = default;

std::shared_ptr<Machine> CompiledGrammar::machine(
    const std::shared_ptr<const Vocabulary>& vocabulary) const {
  const std::lock_guard lock(mutex_);
  std::erase_if(machines_, [](const auto& entry) { return entry.first.expired(); });
  for (const auto& [known, machine] : machines_) {
    if (known.lock() == vocabulary) return machine;
  }
  auto machine = std::make_shared<Machine>(*program_, *vocabulary);
  machines_.emplace_back(vocabulary, machine);
  return machine;
}

}  // namespace tgi::guide
