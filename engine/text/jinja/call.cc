// The interpreter's calls and its look-up of attributes and elements.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "engine/text/jinja/interpreter.h"
#include "engine/text/jinja/methods.h"
#include "engine/text/jinja/operators.h"
#include "engine/text/jinja/print.h"

namespace tgi::jinja {

Value Interpreter::call(const Value& callee, const Arguments& arguments) {
  switch (callee.type()) {
    case Type::kFunction: {
      const auto& bound = callee.object<FunctionObject>();
      return call_builtin(*this, bound.function, bound.self, arguments);
    }
    case Type::kMacro:
      return Value::string(run_macro(callee.object<MacroObject>(), arguments));
    case Type::kLoop:
      if (arguments.positional.size() != 1 || !arguments.named.empty()) {
        fail("loop() takes one argument");
      }
      return callee.object<LoopObject>().recurse(*this, arguments.positional[0]);
    case Type::kJoiner: {
      auto& joiner = callee.object<JoinerObject>();
      if (!arguments.positional.empty() || !arguments.named.empty()) {
        fail("a joiner takes no arguments");
      }
      return std::exchange(joiner.used, true) ? joiner.separator : Value::string("");
    }
    default:
      require_defined(callee);
      fail(fmt::format("'{}' object is not callable", type_name(callee)));
  }
}

namespace {

// Puts back on leaving what a call changes.
template <typename T>
class Restore {
 public:
  explicit Restore(T& variable) : variable_(variable), saved_(variable) {}
  ~Restore() { variable_ = saved_; }
  Restore(const Restore&) = delete;
  Restore& operator=(const Restore&) = delete;

 private:
  T& variable_;
  T saved_;
};

class CallDepth {
 public:
  CallDepth(int& depth, int limit) : depth_(depth) {
    if (depth_ >= limit) fail(fmt::format("macros call each other deeper than {} levels", limit));
    ++depth_;
  }
  ~CallDepth() { --depth_; }
  CallDepth(const CallDepth&) = delete;
  CallDepth& operator=(const CallDepth&) = delete;

 private:
  int& depth_;
};

}  // namespace

std::string Interpreter::run_macro(const MacroObject& macro, const Arguments& arguments) {
  const CallDepth depth(macro_depth_, limits_.max_macro_depth);
  const int line = line_;
  const NewScope scope(*this, &macro.definition.body, macro.scope);
  bind_parameters(macro, arguments);
  std::string text;
  capture(macro.definition.body.statements, text);
  line_ = line;
  return text;
}

void Interpreter::bind_parameters(const MacroObject& macro, const Arguments& arguments) {
  const MacroDefinition& definition = macro.definition;
  std::vector<std::pair<std::string, Value>> named = arguments.named;
  std::vector<size_t> missing;
  for (size_t i = 0; i < definition.parameters.size(); ++i) {
    const NameId name = definition.parameters[i].name;
    if (i < arguments.positional.size()) {
      set_name(name, arguments.positional[i]);
      continue;
    }
    const auto given = std::find_if(named.begin(), named.end(), [&](const auto& argument) {
      return argument.first == name_of(name);
    });
    if (given != named.end()) {
      set_name(name, std::move(given->second));
      named.erase(given);
    } else {
      set_name(name, Value::undefined(fmt::format("'{}' is undefined", name_of(name))));
      missing.push_back(i);
    }
  }
  bind_surplus(definition, arguments, std::move(named));
  // Defaults may use the other parameters, those before with their defaults.
  for (const size_t i : missing) {
    const MacroParameter& parameter = definition.parameters[i];
    if (parameter.fallback != nullptr) {
      set_name(parameter.name, eval(*parameter.fallback));
    } else {
      set_name(parameter.name, Value::undefined(fmt::format("parameter '{}' was not provided",
                                                            name_of(parameter.name))));
    }
  }
}

void Interpreter::bind_surplus(const MacroDefinition& macro,
                               const Arguments& arguments,
                               std::vector<std::pair<std::string, Value>> named) {
  if (macro.takes_caller) {
    Value caller = Value::undefined("no caller defined");
    const auto given = std::find_if(named.begin(), named.end(), [](const auto& argument) {
      return argument.first == "caller";
    });
    if (given != named.end()) {
      caller = std::move(given->second);
      named.erase(given);
    }
    set_name(kCallerName, std::move(caller));
  }
  if (macro.takes_kwargs) {
    DictObject kwargs;
    for (auto& [name, value] : named) {
      kwargs.set(Value::string(name), std::move(value), budget_);
    }
    set_name(kKwargsName, Value::dict(std::move(kwargs)));
  } else if (!named.empty()) {
    fail(fmt::format("macro '{}' takes no argument '{}'", macro.name, named.front().first));
  }
  const size_t taken = std::min(macro.parameters.size(), arguments.positional.size());
  if (macro.takes_varargs) {
    const auto first = arguments.positional.begin() + static_cast<std::ptrdiff_t>(taken);
    set_name(kVarargsName, Value::tuple({first, arguments.positional.end()}));
  } else if (arguments.positional.size() > taken) {
    fail(fmt::format("macro '{}' takes not more than {} arguments, got {}", macro.name,
                     macro.parameters.size(), arguments.positional.size()));
  }
}

std::string Interpreter::run_recursive_loop(const ForStmt& statement,
                                            Scope* scope,
                                            const Value& iterable,
                                            int depth0) {
  const CallDepth depth(macro_depth_, limits_.max_macro_depth);
  const int line = line_;
  std::string text;
  const Restore<Scope*> restore_scope(scope_);
  const Restore<std::string*> restore_out(out_);
  if (scope != nullptr) scope_ = scope;
  out_ = &text;
  run_loop(statement, iterable, depth0);
  line_ = line;
  return text;
}

std::optional<Value> Interpreter::attribute_or_none(const Value& object, const std::string& name) {
  require_defined(object);
  if (object.is(Type::kNamespace)) {
    for (const auto& [known, value] : object.object<NamespaceObject>().attributes) {
      if (known == name) return value;
    }
    return std::nullopt;
  }
  if (object.is(Type::kLoop)) {
    if (auto found = object.object<LoopObject>().attribute(*this, name)) return found;
  }
  return find_attribute(object, name);
}

std::optional<Value> Interpreter::item_or_none(const Value& object, const Value& key) {
  require_defined(object);
  if (object.is(Type::kDict)) {
    if (!is_hashable(key)) return std::nullopt;
    const Value* found = object.dict().find(key, budget_);
    return found == nullptr ? std::nullopt : std::optional<Value>(*found);
  }
  if (!key.is_integral()) return std::nullopt;
  if (object.is_string()) budget_.charge(object.text().size() / 16);
  return element(object, key.as_int());
}

Value Interpreter::attribute(const Value& object, const std::string& name) {
  if (std::optional<Value> found = attribute_or_none(object, name)) return *found;
  if (object.is(Type::kDict)) {
    if (const Value* found = object.dict().find(name); found != nullptr) return *found;
  }
  return Value::undefined(
      fmt::format("'{} object' has no attribute '{}'", type_name(object), name));
}

Value Interpreter::item(const Value& object, const Value& key) {
  if (std::optional<Value> found = item_or_none(object, key)) return *found;
  if (key.is_string()) {
    if (std::optional<Value> found = attribute_or_none(object, key.text())) return *found;
    return Value::undefined(
        fmt::format("'{} object' has no attribute '{}'", type_name(object), key.text()));
  }
  return Value::undefined(
      fmt::format("{} object has no element {}", type_name(object), to_repr(key, budget_)));
}

}  // namespace tgi::jinja
