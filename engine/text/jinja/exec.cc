// What each kind of statement does (declared in ast.h), loops apart.
#include <string>
#include <vector>

#include <fmt/format.h>

#include "engine/text/jinja/interpreter.h"
#include "engine/text/jinja/operators.h"
#include "engine/text/jinja/print.h"

namespace tgi::jinja {

Flow TextStmt::exec(Interpreter& in) const {
  in.write(text);
  return Flow::kNormal;
}

Flow PrintStmt::exec(Interpreter& in) const {
  const Value printed = in.eval(*value);
  if (printed.is_string()) {
    in.write(printed.text());
  } else {
    in.write(to_text(printed, in.budget()));
  }
  return Flow::kNormal;
}

Flow IfStmt::exec(Interpreter& in) const {
  for (const auto& [test, body] : branches) {
    if (is_true(in.eval(*test))) return in.exec(body);
  }
  return in.exec(otherwise);
}

Flow LoopControlStmt::exec(Interpreter&) const {
  return flow;
}

namespace {

// The namespaces of a target are checked before the value is evaluated, as jinja2 does.
void require_namespaces(Interpreter& in, const Target& target) {
  if (target.kind == Target::Kind::kAttribute && !in.load(target.name).is(Type::kNamespace)) {
    fail(fmt::format("cannot assign attribute '{}' on '{}', which is not a namespace",
                     target.attribute, in.name_of(target.name)));
  }
  for (const Target& part : target.parts) require_namespaces(in, part);
}

}  // namespace

Flow SetStmt::exec(Interpreter& in) const {
  require_namespaces(in, target);
  in.assign(target, in.eval(*value));
  return Flow::kNormal;
}

Flow SetBlockStmt::exec(Interpreter& in) const {
  std::string text;
  {
    const Interpreter::NewScope scope(in, &body);
    const Flow flow = in.capture(body.statements, text);
    if (flow != Flow::kNormal) return flow;
    if (filter != nullptr) text = in.filter_text(*filter, std::move(text));
  }
  in.assign(target, Value::string(std::move(text)));
  return Flow::kNormal;
}

Flow FilterBlockStmt::exec(Interpreter& in) const {
  const Interpreter::NewScope scope(in, &body);
  std::string text;
  const Flow flow = in.capture(body.statements, text);
  if (flow != Flow::kNormal) return flow;
  in.write(in.filter_text(*filter, std::move(text)));
  return Flow::kNormal;
}

Flow WithStmt::exec(Interpreter& in) const {
  std::vector<Value> values;
  values.reserve(assignments.size());
  for (const auto& [target, expr] : assignments) values.push_back(in.eval(*expr));
  const Interpreter::NewScope scope(in, &body);
  for (size_t i = 0; i < values.size(); ++i) in.assign(assignments[i].first, values[i]);
  return in.exec(body.statements);
}

Flow ScopeStmt::exec(Interpreter& in) const {
  if (refused_when != nullptr && is_true(in.eval(*refused_when))) {
    fail_unsupported("autoescape is not supported: chat templates write plain text");
  }
  return in.exec_in_new_scope(body);
}

Flow BlockStmt::exec(Interpreter& in) const {
  if (is_required) fail(fmt::format("required block '{}' not found", name));
  return in.exec_block(*this);
}

Flow MacroStmt::exec(Interpreter& in) const {
  in.set_name(name, in.make_macro(macro));
  return Flow::kNormal;
}

Flow CallBlockStmt::exec(Interpreter& in) const {
  const Value macro = in.make_macro(caller);
  in.write(to_text(call->call(in, &macro), in.budget()));
  return Flow::kNormal;
}

}  // namespace tgi::jinja
