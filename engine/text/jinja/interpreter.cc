#include "engine/text/jinja/interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "engine/text/jinja/filters.h"
#include "engine/text/jinja/globals.h"
#include "engine/text/jinja/methods.h"
#include "engine/text/jinja/operators.h"
#include "engine/text/jinja/print.h"
#include "engine/text/jinja/tests.h"

namespace tgi::jinja {
namespace {

constexpr size_t kNameBytes = sizeof(std::pair<NameId, Value>);

// Told apart from other errors, which get the line put before them.
struct RaisedByTemplate : Error {
  using Error::Error;
};

}  // namespace

void raise_from_template(const std::string& message) {
  throw RaisedByTemplate(Code::kInvalidArgument, message);
}

Value* Scope::find(NameId name) {
  for (auto& [known, value] : names) {
    if (known == name) return &value;
  }
  return nullptr;
}

void Scope::set(NameId name, Value value) {
  if (Value* known = find(name); known != nullptr) {
    *known = std::move(value);
  } else {
    names.emplace_back(name, std::move(value));
  }
}

class Interpreter::Depth {
 public:
  explicit Depth(Interpreter& in) : in_(in) {
    if (in_.depth_ >= in_.limits_.max_eval_depth) {
      fail(
          fmt::format("the template nests deeper than {} levels while it runs; does a macro call "
                      "itself without end?",
                      in_.limits_.max_eval_depth));
    }
    ++in_.depth_;
  }
  ~Depth() { --in_.depth_; }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;

 private:
  Interpreter& in_;
};

Interpreter::NewScope::NewScope(Interpreter& in, const ScopedBody* body, Scope* parent)
    : in_(in), body_(body), outer_(in.scope_), parent_(parent != nullptr ? parent : in.scope_) {
  renew();
}

Interpreter::NewScope::~NewScope() {
  leave();
  in_.scope_ = outer_;
}

void Interpreter::NewScope::leave() {
  if (scope_ == nullptr || !scope_->is_captured) return;
  // Kept to the end.
  in_.kept_memory_.add(sizeof(Scope) + scope_->names.capacity() * kNameBytes);
  in_.captured_.push_back(std::move(scope_));
}

void Interpreter::NewScope::renew() {
  leave();
  if (scope_ == nullptr) {
    scope_ = std::make_unique<Scope>();
    scope_->parent = parent_;
  } else {
    scope_->names.clear();
  }
  in_.scope_ = scope_.get();
  if (body_ != nullptr) in_.hide_unset(*body_);
}

void Interpreter::hide_unset(const ScopedBody& body) {
  for (const NameId name : body.unset) {
    if (!variables_[static_cast<size_t>(name)]) continue;  // undefined anyway
    set_name(name, Value::undefined(fmt::format("'{}' is undefined", name_of(name))));
  }
}

Interpreter::Interpreter(const Program& program, const Limits& limits, Clock local_time)
    : program_(program),
      limits_(limits),
      local_time_(std::move(local_time)),
      budget_(limits),
      variables_(program.symbols.size()),
      top_(std::make_unique<Scope>()),
      scope_(top_.get()) {
  for (size_t i = 0; i < program.symbols.size(); ++i) {
    const Builtin* function = find_global(program.symbols[i]);
    if (function == nullptr) continue;
    variables_[i] = Value::from(std::make_shared<FunctionObject>(*function, Value()));
  }
}

// Scopes and namespaces may refer to each other in circles.
Interpreter::~Interpreter() {
  for (const auto& space : namespaces_) space->attributes.clear();
  for (const auto& scope : captured_) scope->names.clear();
  top_->names.clear();
}

void Interpreter::set_variable(std::string_view name, const std::function<Value(Budget&)>& make) {
  const auto found = std::find(program_.symbols.begin(), program_.symbols.end(), name);
  if (found == program_.symbols.end()) return;
  variables_[static_cast<size_t>(found - program_.symbols.begin())] = make(budget_);
}

std::string Interpreter::render() {
  std::string text;
  out_ = &text;
  try {
    hide_unset(program_.body);
    exec(program_.body.statements);
  } catch (const RaisedByTemplate& error) {
    throw Error(error.code(), error.what());
  } catch (const Error& error) {
    throw error.in(fmt::format("line {}", line_));
  }
  return text;
}

Value Interpreter::eval(const Expr& expr) {
  const Depth depth(*this);
  budget_.charge(1);
  line_ = expr.line;
  return expr.eval(*this);
}

Flow Interpreter::exec(const Body& body) {
  const Depth depth(*this);
  for (const auto& statement : body) {
    budget_.charge(1);
    line_ = statement->line;
    const Flow flow = statement->exec(*this);
    if (flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

Flow Interpreter::capture(const Body& body, std::string& text) {
  struct Restore {
    Interpreter& in;
    std::string* out;
    const std::string& text;
    ~Restore() {
      in.out_ = out;
      in.out_memory_.remove(text.size());
    }
  };
  const Restore restore{*this, std::exchange(out_, &text), text};
  return exec(body);
}

Flow Interpreter::exec_in_new_scope(const ScopedBody& body) {
  const NewScope scope(*this, &body);
  return exec(body.statements);
}

void Interpreter::write(std::string_view text) {
  if (text.size() > limits_.max_text_bytes - std::min(out_->size(), limits_.max_text_bytes)) {
    fail(fmt::format("the output is longer than {} bytes", limits_.max_text_bytes));
  }
  budget_.check_memory(text.size());
  budget_.charge(text.size() / 16);
  out_memory_.add(text.size());
  *out_ += text;
}

Value Interpreter::load(NameId name) const {
  for (Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
    if (const Value* value = scope->find(name); value != nullptr) return *value;
  }
  const auto& variable = variables_[static_cast<size_t>(name)];
  return variable ? *variable : Value::undefined(fmt::format("'{}' is undefined", name_of(name)));
}

void Interpreter::assign(const Target& target, const Value& value) {
  if (target.kind == Target::Kind::kName) return set_name(target.name, value);
  if (target.kind == Target::Kind::kAttribute) {
    const Value space = load(target.name);
    if (!space.is(Type::kNamespace)) fail("cannot assign attribute on non-namespace object");
    return set_namespace_attribute(space.object<NamespaceObject>(), target.attribute, value);
  }
  const std::vector<Value> items = to_vector(value, budget_);
  if (items.size() != target.parts.size()) {
    fail(fmt::format("expected {} values to unpack, got {}", target.parts.size(), items.size()));
  }
  for (size_t i = 0; i < items.size(); ++i) assign(target.parts[i], items[i]);
}

Arguments Interpreter::evaluate(const ArgumentExprs& exprs) {
  Arguments arguments;
  arguments.positional.reserve(exprs.positional.size());
  for (const ExprPtr& expr : exprs.positional) arguments.positional.push_back(eval(*expr));
  for (const auto& [name, expr] : exprs.named) arguments.named.emplace_back(name, eval(*expr));
  if (exprs.more_positional != nullptr) {
    for (Value& value : to_vector(eval(*exprs.more_positional), budget_)) {
      arguments.positional.push_back(std::move(value));
    }
  }
  if (exprs.more_named == nullptr) return arguments;
  const Value more = eval(*exprs.more_named);
  if (!more.is(Type::kDict)) fail(fmt::format("** wants a dict, got {}", type_name(more)));
  for (const DictObject::Entry& entry : more.dict().entries) {
    if (!entry.key.is_string()) fail("names of arguments must be strings");
    budget_.charge(1 + arguments.named.size() / 4);
    const auto has_name = [&](const auto& known) { return known.first == entry.key.text(); };
    if (std::any_of(arguments.named.begin(), arguments.named.end(), has_name)) {
      fail(fmt::format("argument '{}' is given twice", entry.key.text()));
    }
    arguments.named.emplace_back(entry.key.text(), entry.value);
  }
  return arguments;
}

std::string Interpreter::filter_text(const Expr& filter, std::string text) {
  Value outer = std::exchange(filtered_text_, Value::string(std::move(text)));
  const Value result = eval(filter);
  filtered_text_ = std::move(outer);
  return to_text(result, budget_);
}

Value Interpreter::make_macro(const MacroDefinition& definition) {
  for (Scope* scope = scope_; scope != nullptr && !scope->is_captured; scope = scope->parent) {
    scope->is_captured = true;
  }
  return Value::from(std::make_shared<MacroObject>(definition, scope_));
}

Value Interpreter::make_namespace(std::vector<std::pair<std::string, Value>> attributes) {
  auto space = std::make_shared<NamespaceObject>();
  for (auto& [name, value] : attributes) {
    budget_.charge(1 + space->attributes.size() / 4);  // looked through for the name
    set_namespace_attribute(*space, name, std::move(value));
  }
  space->memory.add(space->attributes.capacity() * sizeof(space->attributes[0]));
  namespaces_.push_back(space);
  return Value::from(std::move(space));
}

Value Interpreter::call_filter(const Value& name, const Value& value, const Arguments& arguments) {
  const Depth depth(*this);
  require_defined(name);
  const std::string text = to_text(name, budget_);
  const Builtin* filter = find_filter(text);
  if (filter == nullptr) throw Error(unknown_name_error("filter", text));
  return call_builtin(*this, *filter, value, arguments);
}

bool Interpreter::call_test(const Value& name, const Value& value, const Arguments& arguments) {
  const Depth depth(*this);
  require_defined(name);
  const std::string text = to_text(name, budget_);
  const Builtin* test = find_test(text);
  if (test == nullptr) throw Error(unknown_name_error("test", text));
  return is_true(call_builtin(*this, *test, value, arguments));
}

std::tm Interpreter::local_time() const {
  if (!local_time_) fail_unsupported("strftime_now needs a clock, and this rendering has none");
  return local_time_();
}

Flow Interpreter::exec_block(const BlockStmt& block) {
  const NewScope scope(*this, &block.body, block.is_scoped ? scope_ : top_.get());
  return exec(block.body.statements);
}

}  // namespace tgi::jinja
