// The values that are bound to a rendering: functions, macros and the loop variable. Apart from
// value.h because they know the tree and the interpreter.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "engine/text/jinja/ast.h"
#include "engine/text/jinja/builtin.h"
#include "engine/text/jinja/value.h"

namespace tgi::jinja {

struct Scope;

// A global function, or a method together with what it was taken from.
struct FunctionObject : Object {
  FunctionObject(const Builtin& row, Value object)
      : Object(Type::kFunction, depth_around(object)), function(row), self(std::move(object)) {}
  const Builtin& function;
  Value self;
};

struct MacroObject : Object {
  MacroObject(const MacroDefinition& macro, Scope* surrounding)
      : Object(Type::kMacro), definition(macro), scope(surrounding) {}
  const MacroDefinition& definition;
  Scope* scope;  // where it was defined; kept by the interpreter until the end
};

// The `loop` of one running for statement. Elements are drawn, and the statement's `if` is
// evaluated, only when they are asked for, because the body may change what the `if` looks at.
class LoopObject : public Object {
 public:
  LoopObject(
      const ForStmt& statement, Scope* surrounding, Value iterable, int depth0, Budget& budget);

  std::optional<Value> advance(Interpreter& in);
  void finish();  // the loop is over: lets go of everything it holds

  // An attribute by name: null when there is none.
  std::optional<Value> attribute(Interpreter& in, std::string_view name);
  bool changed(Value value, Budget& budget);
  // Renders the body for other elements. Throws unless the statement is recursive and runs.
  Value recurse(Interpreter& in, const Value& iterable) const;

  int64_t index0() const { return index0_; }
  int64_t length(Interpreter& in);
  std::string describe() const;

 private:
  std::optional<Value> draw(Interpreter& in);
  const std::optional<Value>& peek(Interpreter& in);

  const ForStmt& statement_;
  Scope* scope_;  // around the statement; null when the loop is over
  Iteration source_;
  std::deque<std::optional<Value>> ahead_;  // drawn but not yet run; nothing marks the end
  std::optional<int64_t> length_;
  int64_t index0_ = -1;
  int depth0_;
  Value current_;
  std::optional<Value> previous_;
  std::optional<Value> last_changed_;
};

const Builtin* find_loop_method(std::string_view name);

}  // namespace tgi::jinja
