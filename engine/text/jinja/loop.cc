// for statements and the `loop` variable.
#include <fmt/format.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/text/jinja/interpreter.h"
#include "engine/text/jinja/operators.h"

namespace tgi::jinja {

LoopObject::LoopObject(
    const ForStmt& statement, Scope* surrounding, Value iterable, int depth0, Budget& budget)
    : Object(Type::kLoop),
      statement_(statement),
      scope_(surrounding),
      source_(std::move(iterable), budget),
      depth0_(depth0) {
  if (statement_.test == nullptr) length_ = static_cast<int64_t>(source_.length());
}

void LoopObject::finish() {
  scope_ = nullptr;
  source_ = Iteration();
  ahead_.clear();
  current_ = Value();
  previous_.reset();
  last_changed_.reset();
}

std::optional<Value> LoopObject::draw(Interpreter& in) {
  Value item;
  while (source_.next(item)) {
    if (statement_.test == nullptr) return item;
    const Interpreter::NewScope scope(in, nullptr, scope_);
    in.assign(statement_.target, item);
    if (is_true(in.eval(*statement_.test))) return item;
  }
  return std::nullopt;
}

const std::optional<Value>& LoopObject::peek(Interpreter& in) {
  if (ahead_.empty()) ahead_.push_back(draw(in));
  return ahead_.front();
}

std::optional<Value> LoopObject::advance(Interpreter& in) {
  std::optional<Value> item = peek(in);
  if (!item) return std::nullopt;
  ahead_.pop_front();
  previous_ = index0_ >= 0 ? std::optional<Value>(std::move(current_)) : std::nullopt;
  current_ = *item;
  ++index0_;
  return item;
}

int64_t LoopObject::length(Interpreter& in) {
  if (!length_) {
    if (ahead_.empty() || ahead_.back()) {
      do {
        ahead_.push_back(draw(in));
      } while (ahead_.back());
    }
    length_ = index0_ + 1 + static_cast<int64_t>(ahead_.size()) - 1;
  }
  return *length_;
}

bool LoopObject::changed(Value value, Budget& budget) {
  if (scope_ == nullptr) fail("this loop is over");
  if (last_changed_ && equal(*last_changed_, value, budget)) return false;
  last_changed_ = std::move(value);
  return true;
}

Value LoopObject::recurse(Interpreter& in, const Value& iterable) const {
  if (!statement_.is_recursive) {
    fail("the loop must have the 'recursive' marker to be called recursively");
  }
  if (scope_ == nullptr) fail("this loop is over");
  return Value::string(in.run_recursive_loop(statement_, scope_, iterable, depth0_ + 1));
}

std::string LoopObject::describe() const {
  return fmt::format("<LoopContext {}/{}>", index0_ + 1, length_.value_or(0));
}

namespace {

Value loop_cycle(Interpreter&, const Value& self, const Bound& arguments) {
  const auto& choices = arguments.all.positional;
  if (!arguments.all.named.empty()) fail("cycle() takes no named arguments");
  if (choices.empty()) fail("no items for cycling given");
  const auto index = static_cast<size_t>(self.object<LoopObject>().index0());
  return choices[index % choices.size()];
}

Value loop_changed(Interpreter& in, const Value& self, const Bound& arguments) {
  if (!arguments.all.named.empty()) fail("changed() takes no named arguments");
  Value value = Value::tuple(arguments.all.positional);
  return Value::boolean(self.object<LoopObject>().changed(std::move(value), in.budget()));
}

constexpr std::array<Builtin, 2> kLoopMethods = {{
    {.name = "cycle", .call = &loop_cycle, .is_variadic = true},
    {.name = "changed", .call = &loop_changed, .is_variadic = true},
}};

}  // namespace

std::optional<Value> LoopObject::attribute(Interpreter& in, std::string_view name) {
  const auto integer = [](int64_t value) { return Value::integer(value); };
  if (name == "index") return integer(index0_ + 1);
  if (name == "index0") return integer(index0_);
  if (name == "first") return Value::boolean(index0_ == 0);
  if (name == "last") return Value::boolean(!peek(in));
  if (name == "length") return integer(length(in));
  if (name == "revindex") return integer(length(in) - index0_);
  if (name == "revindex0") return integer(length(in) - index0_ - 1);
  if (name == "depth") return integer(depth0_ + 1);
  if (name == "depth0") return integer(depth0_);
  if (name == "previtem") {
    return previous_ ? *previous_ : Value::undefined("there is no previous item");
  }
  if (name == "nextitem") {
    const std::optional<Value>& next = peek(in);
    return next ? *next : Value::undefined("there is no next item");
  }
  return std::nullopt;
}

const Builtin* find_loop_method(std::string_view name) {
  return find_row(kLoopMethods, name);
}

Flow ForStmt::exec(Interpreter& in) const {
  const Value elements = in.eval(*iterable);
  if (is_recursive) {
    in.write(in.run_recursive_loop(*this, nullptr, elements, 0));
    return Flow::kNormal;
  }
  return in.run_loop(*this, elements, 0);
}

namespace {

struct FinishLoop {
  LoopObject& loop;
  ~FinishLoop() { loop.finish(); }
};

}  // namespace

Flow Interpreter::run_loop(const ForStmt& statement, const Value& iterable, int depth0) {
  const auto loop = std::make_shared<LoopObject>(statement, scope_, iterable, depth0, budget_);
  bool any_round_ended = false;  // a round that `continue` cuts short doesn't count, as in jinja2
  {
    const FinishLoop finish{*loop};
    std::optional<NewScope> scope;
    while (const std::optional<Value> item = loop->advance(*this)) {
      scope ? scope->renew() : void(scope.emplace(*this, &statement.body));
      assign(statement.target, *item);
      set_name(kLoopName, Value::from(loop));
      const Flow flow = exec(statement.body.statements);
      if (flow == Flow::kBreak) break;
      any_round_ended = any_round_ended || flow == Flow::kNormal;
    }
  }
  if (any_round_ended || statement.otherwise.statements.empty()) return Flow::kNormal;
  return exec_in_new_scope(statement.otherwise);
}

}  // namespace tgi::jinja
