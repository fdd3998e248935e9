// Which names a scope hides before it sets them. jinja2 decides when it compiles where a name is
// looked up: a name that a scope sets, and that neither it nor a scope around it has read before,
// is the scope's own from the start. Until it is set it is undefined there and in the scopes
// inside, even when the caller gave the template a variable of that name. Names set below an `if`
// are not concerned. The parser reports names in the order of the text; resolve() draws the
// conclusions.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/text/jinja/ast.h"

namespace tgi::jinja {

class SymbolFrames {
 public:
  struct Frame;

  SymbolFrames();
  ~SymbolFrames();

  // Opens the scope of `body`, which must outlive resolve(); null for that of an expression, in
  // which nothing is set. A block doesn't see the scope around it.
  Frame& enter(ScopedBody* body, bool sees_outer = true);
  void leave();
  void resume(Frame& frame);  // enters one that was left

  void load(NameId name);
  void store(NameId name);
  void declare(NameId name);  // a parameter or the target of a loop: always has a value

  void enter_branch();  // of an if
  void leave_branch();

  // Sets `unset` of every body. REQUIRES: every scope was left.
  void resolve();

 private:
  std::unique_ptr<Frame> root_;
  std::vector<Frame*> open_;
};

}  // namespace tgi::jinja
