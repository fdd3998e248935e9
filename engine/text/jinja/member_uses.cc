#include "engine/text/jinja/member_uses.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace tgi::jinja {
namespace {

using Members = std::set<std::string>;

constexpr std::string_view kContent = "content";

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The tree as lists, from the outside in.
struct Nodes {
  std::vector<const Expr*> exprs;
  std::vector<const Stmt*> statements;

  void add(const Expr* expr);
  void add(const ExprPtr& expr) { add(expr.get()); }
  void add(const ArgumentExprs& arguments);
  void add(const MacroDefinition& macro);
  void add(const Body& body);
  void add(const Stmt& statement);

 private:
  void add_children(const Expr& expr);
  bool add_operands(const Expr& expr);
};

void Nodes::add(const ArgumentExprs& arguments) {
  for (const ExprPtr& argument : arguments.positional) add(argument);
  for (const auto& [name, argument] : arguments.named) add(argument);
  add(arguments.more_positional);
  add(arguments.more_named);
}

void Nodes::add(const Expr* expr) {
  if (expr == nullptr) return;
  exprs.push_back(expr);
  add_children(*expr);
}

// Those of operators. False for other kinds of expressions.
bool Nodes::add_operands(const Expr& expr) {
  if (const auto* unary = dynamic_cast<const UnaryExpr*>(&expr)) {
    add(unary->operand);
  } else if (const auto* binary = dynamic_cast<const BinaryExpr*>(&expr)) {
    add(binary->left);
    add(binary->right);
  } else if (const auto* logic = dynamic_cast<const LogicExpr*>(&expr)) {
    add(logic->left);
    add(logic->right);
  } else if (const auto* concat = dynamic_cast<const ConcatExpr*>(&expr)) {
    for (const ExprPtr& part : concat->parts) add(part);
  } else if (const auto* compare = dynamic_cast<const CompareExpr*>(&expr)) {
    add(compare->first);
    for (const auto& [op, operand] : compare->rest) add(operand);
  } else if (const auto* choice = dynamic_cast<const ConditionalExpr*>(&expr)) {
    add(choice->test);
    add(choice->then);
    add(choice->otherwise);
  } else {
    return false;
  }
  return true;
}

void Nodes::add_children(const Expr& expr) {
  if (add_operands(expr)) return;
  if (const auto* sequence = dynamic_cast<const SequenceExpr*>(&expr)) {
    for (const ExprPtr& item : sequence->items) add(item);
  } else if (const auto* dict = dynamic_cast<const DictExpr*>(&expr)) {
    for (const auto& [key, value] : dict->entries) {
      add(key);
      add(value);
    }
  } else if (const auto* attribute = dynamic_cast<const AttributeExpr*>(&expr)) {
    add(attribute->object);
  } else if (const auto* item = dynamic_cast<const ItemExpr*>(&expr)) {
    add(item->object);
    add(item->key);
  } else if (const auto* slice = dynamic_cast<const SliceExpr*>(&expr)) {
    for (const ExprPtr* part : {&slice->object, &slice->start, &slice->stop, &slice->step}) {
      add(*part);
    }
  } else if (const auto* call = dynamic_cast<const CallExpr*>(&expr)) {
    add(call->callee);
    add(call->arguments);
  } else if (const auto* filter = dynamic_cast<const FilterExpr*>(&expr)) {
    add(filter->operand);
    add(filter->arguments);
  } else if (const auto* test = dynamic_cast<const TestExpr*>(&expr)) {
    add(test->operand);
    add(test->arguments);
  }
}

void Nodes::add(const MacroDefinition& macro) {
  for (const MacroParameter& parameter : macro.parameters) add(parameter.fallback);
  add(macro.body.statements);
}

void Nodes::add(const Body& body) {
  for (const auto& statement : body) add(*statement);
}

void Nodes::add(const Stmt& statement) {
  statements.push_back(&statement);
  if (const auto* print = dynamic_cast<const PrintStmt*>(&statement)) {
    add(print->value);
  } else if (const auto* choice = dynamic_cast<const IfStmt*>(&statement)) {
    for (const auto& [test, body] : choice->branches) {
      add(test);
      add(body);
    }
    add(choice->otherwise);
  } else if (const auto* loop = dynamic_cast<const ForStmt*>(&statement)) {
    add(loop->iterable);
    add(loop->test);
    add(loop->body.statements);
    add(loop->otherwise.statements);
  } else if (const auto* set = dynamic_cast<const SetStmt*>(&statement)) {
    add(set->value);
  } else if (const auto* set_block = dynamic_cast<const SetBlockStmt*>(&statement)) {
    add(set_block->filter);
    add(set_block->body.statements);
  } else if (const auto* filter = dynamic_cast<const FilterBlockStmt*>(&statement)) {
    add(filter->filter);
    add(filter->body.statements);
  } else if (const auto* with = dynamic_cast<const WithStmt*>(&statement)) {
    for (const auto& [target, value] : with->assignments) add(value);
    add(with->body.statements);
  } else if (const auto* scope = dynamic_cast<const ScopeStmt*>(&statement)) {
    add(scope->body.statements);
  } else if (const auto* block = dynamic_cast<const BlockStmt*>(&statement)) {
    add(block->body.statements);
  } else if (const auto* macro = dynamic_cast<const MacroStmt*>(&statement)) {
    add(macro->macro);
  } else if (const auto* call = dynamic_cast<const CallBlockStmt*>(&statement)) {
    add(call->call.get());
    add(call->caller);
  }
}

// The text of a constant, if it is one.
std::optional<std::string> constant_text(const Expr* expr) {
  const auto* constant = dynamic_cast<const ConstExpr*>(expr);
  if (constant == nullptr || !constant->value.is_string()) return std::nullopt;
  return constant->value.text();
}

bool is_none(const Expr* expr) {
  const auto* constant = dynamic_cast<const ConstExpr*>(expr);
  return constant != nullptr && constant->value.is_none();
}

class Finder {
 public:
  explicit Finder(const Program& program) : symbols_(program.symbols) {
    nodes_.add(program.body.statements);
    collect_macros();
    // Each round follows values through one more assignment.
    do {
      has_changed_ = false;
      follow_assignments();
    } while (has_changed_);
  }

  MemberUses run() {
    MemberUses uses;
    for (const Expr* expr : nodes_.exprs) look_for_none(*expr, uses.compared_with_none);
    uses.takes_parts =
        loops_over_parts() || std::any_of(nodes_.exprs.begin(), nodes_.exprs.end(),
                                          [&](const Expr* expr) { return takes_part(*expr); });
    return uses;
  }

 private:
  // --- which members of messages an expression may have the value of

  // x.name, x['name'], x.get('name'), x|attr('name'): the object and the name.
  static std::pair<const Expr*, std::optional<std::string>> access_of(const Expr& expr) {
    if (const auto* attribute = dynamic_cast<const AttributeExpr*>(&expr)) {
      return {attribute->object.get(), attribute->name};
    }
    if (const auto* item = dynamic_cast<const ItemExpr*>(&expr)) {
      return {item->object.get(), constant_text(item->key.get())};
    }
    if (const auto* call = dynamic_cast<const CallExpr*>(&expr)) {
      const auto* method = dynamic_cast<const AttributeExpr*>(call->callee.get());
      if (method != nullptr && method->name == "get" && !call->arguments.positional.empty()) {
        return {method->object.get(), constant_text(call->arguments.positional[0].get())};
      }
    }
    if (const auto* filter = dynamic_cast<const FilterExpr*>(&expr)) {
      if (filter->name == "attr" && !filter->arguments.positional.empty()) {
        return {filter->operand.get(), constant_text(filter->arguments.positional[0].get())};
      }
    }
    return {nullptr, std::nullopt};
  }

  Members members_of(const Expr* expr) const {
    if (expr == nullptr) return {};
    if (const auto* name = dynamic_cast<const NameExpr*>(expr)) return found(names_, name->name);
    if (const auto* choice = dynamic_cast<const ConditionalExpr*>(expr)) {
      return both(members_of(choice->then.get()), members_of(choice->otherwise.get()));
    }
    if (const auto* logic = dynamic_cast<const LogicExpr*>(expr)) {
      return both(members_of(logic->left.get()), members_of(logic->right.get()));
    }
    if (const auto* slice = dynamic_cast<const SliceExpr*>(expr)) {
      return members_of(slice->object.get());
    }
    if (const auto* filter = dynamic_cast<const FilterExpr*>(expr)) {
      const bool gives_the_same =
          is_one_of(filter->name, {"default", "d", "list", "reverse", "select", "reject",
                                   "selectattr", "rejectattr", "sort", "unique"});
      if (gives_the_same) return members_of(filter->operand.get());
    }
    const std::optional<std::string> name = access_of(*expr).second;
    if (!name) return {};
    return both({*name}, found(attributes_, *name));
  }

  bool is_content(const Expr* expr) const {
    return members_of(expr).count(std::string(kContent)) != 0;
  }

  template <typename Key>
  static Members found(const std::map<Key, Members>& map, const Key& key) {
    const auto place = map.find(key);
    return place == map.end() ? Members{} : place->second;
  }

  static Members both(Members left, const Members& right) {
    left.insert(right.begin(), right.end());
    return left;
  }

  // --- assignments

  void collect_macros() {
    for (const Stmt* statement : nodes_.statements) {
      if (const auto* macro = dynamic_cast<const MacroStmt*>(statement)) {
        macros_[macro->name].push_back(&macro->macro);
      }
    }
  }

  void assign(Members& to, const Members& members) {
    const size_t before = to.size();
    to.insert(members.begin(), members.end());
    has_changed_ = has_changed_ || to.size() != before;
  }

  void assign(const Target& target, const Expr* value) {
    const auto* sequence = dynamic_cast<const SequenceExpr*>(value);
    if (target.kind == Target::Kind::kTuple) {
      if (sequence == nullptr || sequence->items.size() != target.parts.size()) return;
      for (size_t i = 0; i < target.parts.size(); ++i) {
        assign(target.parts[i], sequence->items[i].get());
      }
    } else if (target.kind == Target::Kind::kAttribute) {
      assign(attributes_[target.attribute], members_of(value));
    } else {
      assign(names_[target.name], members_of(value));
    }
  }

  void follow_call(const CallExpr& call) {
    const auto* name = dynamic_cast<const NameExpr*>(call.callee.get());
    if (name == nullptr) return;
    const auto macros = macros_.find(name->name);
    if (macros == macros_.end()) return;
    for (const MacroDefinition* macro : macros->second) {
      const size_t num_given = call.arguments.positional.size();
      for (size_t i = 0; i < std::min(num_given, macro->parameters.size()); ++i) {
        assign(names_[macro->parameters[i].name], members_of(call.arguments.positional[i].get()));
      }
      for (const MacroParameter& parameter : macro->parameters) {
        for (const auto& [given, value] : call.arguments.named) {
          if (given == symbols_[static_cast<size_t>(parameter.name)]) {
            assign(names_[parameter.name], members_of(value.get()));
          }
        }
      }
    }
  }

  void follow_assignments() {
    for (const Stmt* statement : nodes_.statements) {
      if (const auto* set = dynamic_cast<const SetStmt*>(statement)) {
        assign(set->target, set->value.get());
      } else if (const auto* with = dynamic_cast<const WithStmt*>(statement)) {
        for (const auto& [target, value] : with->assignments) assign(target, value.get());
      }
    }
    for (const Expr* expr : nodes_.exprs) {
      if (const auto* call = dynamic_cast<const CallExpr*>(expr)) follow_call(*call);
    }
  }

  // --- uses

  void look_for_none(const Expr& expr, Members& out) const {
    const auto take = [&](const Expr* compared) {
      const Members members = members_of(compared);
      out.insert(members.begin(), members.end());
    };
    if (const auto* test = dynamic_cast<const TestExpr*>(&expr)) {
      const bool names_none =
          !test->arguments.positional.empty() && is_none(test->arguments.positional[0].get());
      if (test->name == "none" || names_none) take(test->operand.get());
    }
    const auto* compare = dynamic_cast<const CompareExpr*>(&expr);
    if (compare == nullptr) return;
    const Expr* left = compare->first.get();
    for (const auto& [op, right] : compare->rest) {
      if (op == CompareOp::kEqual || op == CompareOp::kNotEqual) {
        if (is_none(right.get())) take(left);
        if (is_none(left)) take(right.get());
      }
      left = right.get();
    }
  }

  static bool names_part_member(const std::optional<std::string>& name) {
    return name && is_one_of(*name, {"type", "text"});
  }

  // Whether an expression reads the type or text of one part: content[0].text, or maps them all.
  bool takes_part(const Expr& expr) const {
    if (const auto* filter = dynamic_cast<const FilterExpr*>(&expr)) {
      if (!is_content(filter->operand.get())) return false;
      if (is_one_of(filter->name, {"selectattr", "rejectattr", "groupby"})) return true;
      const auto& named = filter->arguments.named;
      return std::any_of(named.begin(), named.end(),
                         [](const auto& argument) { return argument.first == "attribute"; });
    }
    const auto [object, name] = access_of(expr);
    if (object == nullptr || !names_part_member(name)) return false;
    if (const auto* item = dynamic_cast<const ItemExpr*>(object)) {
      return is_content(item->object.get());
    }
    const auto* end = dynamic_cast<const FilterExpr*>(object);
    return end != nullptr && is_one_of(end->name, {"first", "last"}) &&
           is_content(end->operand.get());
  }

  // What is drawn from content by a loop, and then looked into. A loop alone proves nothing: some
  // templates keep tool calls in `content`.
  bool loops_over_parts() const {
    std::set<NameId> drawn;
    for (const Stmt* statement : nodes_.statements) {
      const auto* loop = dynamic_cast<const ForStmt*>(statement);
      if (loop == nullptr || loop->target.kind != Target::Kind::kName) continue;
      if (is_content(loop->iterable.get())) drawn.insert(loop->target.name);
    }
    if (drawn.empty()) return false;
    return std::any_of(nodes_.exprs.begin(), nodes_.exprs.end(), [&](const Expr* expr) {
      const auto [object, name] = access_of(*expr);
      const auto* part = dynamic_cast<const NameExpr*>(object);
      return part != nullptr && names_part_member(name) && drawn.count(part->name) != 0;
    });
  }

  const std::vector<std::string>& symbols_;
  Nodes nodes_;
  std::map<NameId, std::vector<const MacroDefinition*>> macros_;
  std::map<NameId, Members> names_;
  std::map<std::string, Members> attributes_;
  bool has_changed_ = false;
};

}  // namespace

MemberUses find_member_uses(const Program& program) {
  return Finder(program).run();
}

}  // namespace tgi::jinja
