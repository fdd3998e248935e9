#include "engine/text/jinja/symbols.h"

namespace tgi::jinja {

struct SymbolFrames::Frame {
  Frame* outer = nullptr;
  ScopedBody* body = nullptr;
  int branches = 0;                       // ifs around the current place
  std::unordered_map<NameId, bool> seen;  // → whether it was set before it was read
  std::vector<std::unique_ptr<Frame>> inner;

  bool knows(NameId name) const {
    return seen.count(name) != 0 || (outer != nullptr && outer->knows(name));
  }

  void resolve() {
    for (const auto& [name, is_set_first] : seen) {
      if (is_set_first && (outer == nullptr || !outer->knows(name))) body->unset.push_back(name);
    }
    for (const auto& frame : inner) frame->resolve();
  }
};

SymbolFrames::SymbolFrames() = default;
SymbolFrames::~SymbolFrames() = default;

SymbolFrames::Frame& SymbolFrames::enter(ScopedBody* body, bool sees_outer) {
  auto frame = std::make_unique<Frame>();
  frame->body = body;
  if (!open_.empty() && sees_outer) frame->outer = open_.back();
  Frame& entered = *frame;
  if (open_.empty()) {
    root_ = std::move(frame);
  } else {
    open_.back()->inner.push_back(std::move(frame));
  }
  open_.push_back(&entered);
  return entered;
}

void SymbolFrames::leave() {
  open_.pop_back();
}

void SymbolFrames::resume(Frame& frame) {
  open_.push_back(&frame);
}

void SymbolFrames::load(NameId name) {
  open_.back()->seen.try_emplace(name, false);
}

void SymbolFrames::store(NameId name) {
  open_.back()->seen.try_emplace(name, open_.back()->branches == 0);
}

void SymbolFrames::declare(NameId name) {
  open_.back()->seen[name] = false;
}

void SymbolFrames::enter_branch() {
  ++open_.back()->branches;
}

void SymbolFrames::leave_branch() {
  --open_.back()->branches;
}

void SymbolFrames::resolve() {
  root_->resolve();
}

}  // namespace tgi::jinja
