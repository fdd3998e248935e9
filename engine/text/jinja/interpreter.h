// Walks a parsed template once and gives its text. One object per rendering, used by one thread;
// the Program must outlive it and is only read. Scopes follow jinja2: a for loop, macro, with,
// filter and set block have names of their own, `if` has not, and a macro sees the names around its
// definition.
#pragma once

#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/jinja/ast.h"
#include "engine/text/jinja/builtin.h"
#include "engine/text/jinja/limits.h"
#include "engine/text/jinja/objects.h"
#include "engine/text/jinja/value.h"

namespace tgi::jinja {

struct Scope {
  Value* find(NameId name);
  void set(NameId name, Value value);

  Scope* parent = nullptr;
  bool is_captured = false;  // a macro refers to it
  std::vector<std::pair<NameId, Value>> names;
};

class Interpreter {
 public:
  using Clock = std::function<std::tm()>;

  // `local_time` may be empty: strftime_now is an error then.
  Interpreter(const Program& program, const Limits& limits, Clock local_time);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  // Gives the template a variable. Cheap, and does nothing, when no part of it mentions the name.
  void set_variable(std::string_view name, const std::function<Value(Budget&)>& make);

  // REQUIRES: called once.
  // Throws kInvalidArgument or kUnsupported with the line; raise_exception's message as it is.
  std::string render();

  // --- what the tree uses ---
  Value eval(const Expr& expr);
  Flow exec(const Body& body);
  Flow capture(const Body& body, std::string& text);
  Flow exec_in_new_scope(const ScopedBody& body);
  void write(std::string_view text);
  Value load(NameId name) const;
  void assign(const Target& target, const Value& value);
  void set_name(NameId name, Value value) { scope_->set(name, std::move(value)); }
  const std::string& name_of(NameId name) const {
    return program_.symbols[static_cast<size_t>(name)];
  }
  Arguments evaluate(const ArgumentExprs& arguments);
  Value make_macro(const MacroDefinition& definition);
  // Applies the filter chain of a block to its text.
  std::string filter_text(const Expr& filter, std::string text);
  const Value& filtered_text() const { return filtered_text_; }
  Flow run_loop(const ForStmt& statement, const Value& iterable, int depth0);
  // One level of a recursive loop. `scope`: around the statement; the current one when null.
  std::string run_recursive_loop(const ForStmt& statement,
                                 Scope* scope,
                                 const Value& iterable,
                                 int depth0);
  Flow exec_block(const BlockStmt& block);

  // --- what functions use ---
  Value call(const Value& callee, const Arguments& arguments);
  Value attribute(const Value& object, const std::string& name);  // object.name
  Value item(const Value& object, const Value& key);              // object[key]
  Value call_filter(const Value& name, const Value& value, const Arguments& arguments);
  bool call_test(const Value& name, const Value& value, const Arguments& arguments);
  Value make_namespace(std::vector<std::pair<std::string, Value>> attributes);
  Budget& budget() { return budget_; }
  const Limits& limits() const { return limits_; }
  std::tm local_time() const;

  // The scope of `body` (null: of an expression), below `parent` (null: below the current one), for
  // as long as the object lives.
  class NewScope {
   public:
    NewScope(Interpreter& in, const ScopedBody* body, Scope* parent = nullptr);
    ~NewScope();
    NewScope(const NewScope&) = delete;
    NewScope& operator=(const NewScope&) = delete;
    void renew();  // forgets the names, as between two rounds of a loop

   private:
    void leave();

    Interpreter& in_;
    const ScopedBody* body_;
    Scope* outer_;
    Scope* parent_;
    std::unique_ptr<Scope> scope_;
  };

 private:
  class Depth;

  void hide_unset(const ScopedBody& body);

  std::string run_macro(const MacroObject& macro, const Arguments& arguments);
  void bind_parameters(const MacroObject& macro, const Arguments& arguments);
  void bind_surplus(const MacroDefinition& macro,
                    const Arguments& arguments,
                    std::vector<std::pair<std::string, Value>> named);
  std::optional<Value> attribute_or_none(const Value& object, const std::string& name);
  std::optional<Value> item_or_none(const Value& object, const Value& key);

  const Program& program_;
  const Limits& limits_;
  Clock local_time_;
  Budget budget_;
  std::vector<std::optional<Value>> variables_;  // by NameId
  std::unique_ptr<Scope> top_;
  Scope* scope_;
  std::string* out_ = nullptr;
  MemoryCount out_memory_{0};   // of what was written, blocks that are being captured included
  MemoryCount kept_memory_{0};  // of captured_
  Value filtered_text_;
  int line_ = 1;
  int depth_ = 0;
  int macro_depth_ = 0;
  std::vector<std::unique_ptr<Scope>> captured_;              // macros may still refer to them
  std::vector<std::shared_ptr<NamespaceObject>> namespaces_;  // may refer to each other
};

// repr() of what can be called and of the loop.
std::string describe_callable(const Value& value);

// raise_exception: its message goes to the caller as it is.
[[noreturn]] void raise_from_template(const std::string& message);

}  // namespace tgi::jinja
