// The parsed template: expressions that evaluate and statements that write. The parser
// (parser.h) builds it, the interpreter (interpreter.h) walks it; immutable after
// parsing, so that one template may be rendered by many threads at once. eval is defined in
// eval.cc, exec in exec.cc and loop.cc.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/text/jinja/operators.h"
#include "engine/text/jinja/value.h"

namespace tgi::jinja {

class Interpreter;
struct Builtin;

// What a statement leaves behind for the loop around it.
enum class Flow { kNormal, kBreak, kContinue };

struct Expr {
  explicit Expr(int at) : line(at) {}
  virtual ~Expr() = default;
  virtual Value eval(Interpreter& in) const = 0;

  int line;
  int depth = 1;  // of the tree below, set by the parser
};
using ExprPtr = std::unique_ptr<Expr>;

struct Stmt {
  explicit Stmt(int at) : line(at) {}
  virtual ~Stmt() = default;
  virtual Flow exec(Interpreter& in) const = 0;

  int line;
};
using Body = std::vector<std::unique_ptr<Stmt>>;

// Names are numbered by the parser; `symbols[id]` is the name.
using NameId = int;

// A body with names of its own. `unset`: those that are undefined at its start, whatever variables
// the template was given (symbols.h).
struct ScopedBody {
  Body statements;
  std::vector<NameId> unset;
};

// What can be assigned to: a name, an attribute of a namespace, or a tuple of targets.
struct Target {
  enum class Kind { kName, kAttribute, kTuple };
  Kind kind = Kind::kName;
  NameId name = 0;
  std::string attribute;
  std::vector<Target> parts;
};

// --- expressions ---

struct ConstExpr : Expr {
  ConstExpr(int at, Value constant) : Expr(at), value(std::move(constant)) {}
  Value eval(Interpreter& in) const override;
  Value value;
};

struct NameExpr : Expr {
  NameExpr(int at, NameId id) : Expr(at), name(id) {}
  Value eval(Interpreter& in) const override;
  NameId name;
};

struct SequenceExpr : Expr {
  SequenceExpr(int at, bool tuple) : Expr(at), is_tuple(tuple) {}
  Value eval(Interpreter& in) const override;
  bool is_tuple;
  std::vector<ExprPtr> items;
};

struct DictExpr : Expr {
  using Expr::Expr;
  Value eval(Interpreter& in) const override;
  std::vector<std::pair<ExprPtr, ExprPtr>> entries;
};

enum class UnaryOp { kNegative, kPositive, kNot };

struct UnaryExpr : Expr {
  using Expr::Expr;
  Value eval(Interpreter& in) const override;
  UnaryOp op = UnaryOp::kNot;
  ExprPtr operand;
};

struct BinaryExpr : Expr {
  using Expr::Expr;
  Value eval(Interpreter& in) const override;
  BinaryOp op = BinaryOp::kAdd;
  ExprPtr left;
  ExprPtr right;
};

struct LogicExpr : Expr {
  using Expr::Expr;
  Value eval(Interpreter& in) const override;
  bool is_and = false;
  ExprPtr left;
  ExprPtr right;
};

struct ConcatExpr : Expr {
  using Expr::Expr;
  Value eval(Interpreter& in) const override;
  std::vector<ExprPtr> parts;
};

// first op second op third ...: holds when each neighbouring pair does.
struct CompareExpr : Expr {
  using Expr::Expr;
  Value eval(Interpreter& in) const override;
  ExprPtr first;
  std::vector<std::pair<CompareOp, ExprPtr>> rest;
};

struct ConditionalExpr : Expr {
  using Expr::Expr;
  Value eval(Interpreter& in) const override;
  ExprPtr test;
  ExprPtr then;
  ExprPtr otherwise;  // may be null: undefined
};

struct AttributeExpr : Expr {
  using Expr::Expr;
  Value eval(Interpreter& in) const override;
  ExprPtr object;
  std::string name;
};

struct ItemExpr : Expr {
  using Expr::Expr;
  Value eval(Interpreter& in) const override;
  ExprPtr object;
  ExprPtr key;
};

struct SliceExpr : Expr {
  using Expr::Expr;
  Value eval(Interpreter& in) const override;
  ExprPtr object;
  ExprPtr start;  // each of the three may be null
  ExprPtr stop;
  ExprPtr step;
};

struct ArgumentExprs {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr more_positional;  // *args, may be null
  ExprPtr more_named;       // **kwargs, may be null
};

struct CallExpr : Expr {
  using Expr::Expr;
  Value eval(Interpreter& in) const override;
  // Calls with the macro of a call block as the additional argument `caller`.
  Value call(Interpreter& in, const Value* caller) const;
  ExprPtr callee;
  ArgumentExprs arguments;
};

struct FilterExpr : Expr {
  using Expr::Expr;
  Value eval(Interpreter& in) const override;
  ExprPtr operand;  // null: the text captured by the block the filter belongs to
  std::string name;
  const Builtin* filter = nullptr;  // null: unknown, which is an error when it is reached
  ArgumentExprs arguments;
};

struct TestExpr : Expr {
  using Expr::Expr;
  Value eval(Interpreter& in) const override;
  ExprPtr operand;
  std::string name;
  const Builtin* test = nullptr;  // null: unknown, which is an error when it is reached
  bool is_negated = false;
  ArgumentExprs arguments;
};

// --- statements ---

struct TextStmt : Stmt {
  TextStmt(int at, std::string data) : Stmt(at), text(std::move(data)) {}
  Flow exec(Interpreter& in) const override;
  std::string text;
};

struct PrintStmt : Stmt {
  PrintStmt(int at, ExprPtr printed) : Stmt(at), value(std::move(printed)) {}
  Flow exec(Interpreter& in) const override;
  ExprPtr value;
};

struct IfStmt : Stmt {
  using Stmt::Stmt;
  Flow exec(Interpreter& in) const override;
  std::vector<std::pair<ExprPtr, Body>> branches;
  Body otherwise;
};

struct ForStmt : Stmt {
  using Stmt::Stmt;
  Flow exec(Interpreter& in) const override;
  Target target;
  ExprPtr iterable;
  ExprPtr test;  // may be null
  bool is_recursive = false;
  ScopedBody body;
  ScopedBody otherwise;
};

struct LoopControlStmt : Stmt {
  LoopControlStmt(int at, Flow effect) : Stmt(at), flow(effect) {}
  Flow exec(Interpreter& in) const override;
  Flow flow;
};

struct SetStmt : Stmt {
  using Stmt::Stmt;
  Flow exec(Interpreter& in) const override;
  Target target;
  ExprPtr value;
};

struct SetBlockStmt : Stmt {
  using Stmt::Stmt;
  Flow exec(Interpreter& in) const override;
  Target target;
  ExprPtr filter;  // may be null
  ScopedBody body;
};

struct FilterBlockStmt : Stmt {
  using Stmt::Stmt;
  Flow exec(Interpreter& in) const override;
  ExprPtr filter;
  ScopedBody body;
};

struct WithStmt : Stmt {
  using Stmt::Stmt;
  Flow exec(Interpreter& in) const override;
  std::vector<std::pair<Target, ExprPtr>> assignments;
  ScopedBody body;
};

// A body with a scope of its own that is written as it stands: {% generation %}, {% autoescape %}.
struct ScopeStmt : Stmt {
  using Stmt::Stmt;
  Flow exec(Interpreter& in) const override;
  ExprPtr refused_when;  // may be null; autoescape that is on
  ScopedBody body;
};

// {% block %}: with nothing to inherit from, a body that sees only the top level's names.
struct BlockStmt : Stmt {
  using Stmt::Stmt;
  Flow exec(Interpreter& in) const override;
  std::string name;
  bool is_scoped = false;
  bool is_required = false;
  ScopedBody body;
};

struct MacroParameter {
  NameId name = 0;
  ExprPtr fallback;  // may be null
};

// The common part of macros and call blocks. The three flags tell whether the body mentions the
// special names, which decides which surplus arguments are taken.
struct MacroDefinition {
  std::string name;
  std::vector<MacroParameter> parameters;
  bool takes_caller = false;
  bool takes_varargs = false;
  bool takes_kwargs = false;
  ScopedBody body;
};

struct MacroStmt : Stmt {
  using Stmt::Stmt;
  Flow exec(Interpreter& in) const override;
  NameId name = 0;
  MacroDefinition macro;
};

struct CallBlockStmt : Stmt {
  using Stmt::Stmt;
  Flow exec(Interpreter& in) const override;
  MacroDefinition caller;
  std::unique_ptr<CallExpr> call;
};

// Names with a meaning of their own; every template numbers them the same way.
enum SpecialName : NameId { kLoopName, kCallerName, kVarargsName, kKwargsName };

struct Program {
  std::vector<std::string> symbols;
  ScopedBody body;
};

}  // namespace tgi::jinja
