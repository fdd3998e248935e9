#include "engine/text/jinja/parser.h"

#include <fmt/format.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/text/jinja/parser_base.h"

namespace tgi::jinja {
namespace {

class Parser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Program run() {
    Program program;
    frames_.enter(&program.body);
    program.body.statements = parse_body({});
    frames_.leave();
    if (current().type != TokenType::kEnd) fail_unknown_tag(current());
    if (!unknown_.empty()) throw Error(unknown_.front());
    frames_.resolve();
    program.symbols = std::move(symbols_);
    return program;
  }

 private:
  using EndNames = std::initializer_list<std::string_view>;
  using StmtPtr = std::unique_ptr<Stmt>;

  struct Tag {
    std::string_view name;
    StmtPtr (Parser::*parse)();
  };
  static const std::array<Tag, 12> kTags;

  // Text and tags up to one of the `ends`, which becomes the current token (behind its {%), or the
  // end of the template.
  Body parse_body(EndNames ends) {
    Body body;
    while (current().type != TokenType::kEnd) {
      const int line = current().line;
      if (current().type == TokenType::kData) {
        body.push_back(std::make_unique<TextStmt>(line, take().text));
      } else if (current().type == TokenType::kVariableBegin) {
        take();
        ExprPtr value = parse_tuple(true);
        body.push_back(std::make_unique<PrintStmt>(line, std::move(value)));
        expect(TokenType::kVariableEnd, "end of print statement");
      } else {
        expect(TokenType::kBlockBegin, "begin of statement block");
        for (const std::string_view end : ends) {
          if (current().is_name(end)) return body;
        }
        parse_statement(body);
        expect(TokenType::kBlockEnd, "end of statement block");
      }
    }
    return body;
  }

  // The rest of an opening tag, then its body up to one of `ends`, whose name is taken and
  // returned.
  std::string parse_block(Body& body, EndNames ends, int line) {
    take_operator_if(":");
    expect(TokenType::kBlockEnd, "end of statement block");
    open_tags_.push_back({line, ends});
    body = parse_body(ends);
    if (current().type == TokenType::kEnd) {
      fail_at(current().line, fmt::format("the template ends, but the block of line {} has no '{}'",
                                          line, *(ends.end() - 1)));
    }
    open_tags_.pop_back();
    return take().text;
  }

  [[noreturn]] void fail_unknown_tag(const Token& token) const {
    std::string hint;
    if (!open_tags_.empty()) {
      hint = fmt::format("; looking for {} of the block opened on line {}",
                         fmt::join(open_tags_.back().ends, " or "), open_tags_.back().line);
    }
    fail_at(token.line, fmt::format("unknown tag {}{}", describe(token), hint));
  }

  void parse_statement(Body& body) {
    const Nesting nesting(*this);
    if (current().type != TokenType::kName) {
      fail_at(current().line, fmt::format("expected a tag name, got {}", describe(current())));
    }
    for (const std::string_view refused : {"include", "import", "from", "extends"}) {
      if (!current().is_name(refused)) continue;
      fail_unsupported_at(
          current().line,
          fmt::format("{{% {} %}} is not supported: a chat template stands alone", refused));
    }
    if (take_name_if("print")) {
      do {
        if (current().type == TokenType::kBlockEnd) break;
        const int line = current().line;
        body.push_back(std::make_unique<PrintStmt>(line, parse_expression()));
      } while (take_operator_if(","));
      return;
    }
    for (const Tag& tag : kTags) {
      if (!current().is_name(tag.name)) continue;
      body.push_back((this->*tag.parse)());
      return;
    }
    fail_unknown_tag(current());
  }

  // What surrounds a statement's body, put back at its end.
  class Inside {
   public:
    // `breakable`: how many loops `break` could leave; a macro's body is in none.
    Inside(Parser& parser, bool in_conditional, int breakable)
        : parser_(parser),
          in_conditional_(std::exchange(parser.in_conditional_, in_conditional)),
          breakable_(std::exchange(parser.breakable_, breakable)) {}
    ~Inside() {
      parser_.in_conditional_ = in_conditional_;
      parser_.breakable_ = breakable_;
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    Parser& parser_;
    bool in_conditional_;
    int breakable_;
  };

  // A body with names of its own, up to the tag `end`. The scope may have been opened before.
  void parse_scope(ScopedBody& body,
                   std::string_view end,
                   int line,
                   int breakable,
                   SymbolFrames::Frame* opened = nullptr) {
    const Inside inside(*this, false, breakable);
    opened != nullptr ? frames_.resume(*opened) : void(frames_.enter(&body));
    parse_block(body.statements, {end}, line);
    frames_.leave();
  }

  StmtPtr parse_if() {
    auto node = std::make_unique<IfStmt>(take().line);
    const Inside inside(*this, true, breakable_);
    std::string end = "elif";
    while (end == "elif") {
      ExprPtr test = parse_tuple(false);
      Body body;
      frames_.enter_branch();
      end = parse_block(body, {"elif", "else", "endif"}, node->line);
      frames_.leave_branch();
      node->branches.emplace_back(std::move(test), std::move(body));
    }
    frames_.enter_branch();
    if (end == "else") parse_block(node->otherwise, {"endif"}, node->line);
    frames_.leave_branch();
    return node;
  }

  void refuse_loop_name(const Target& target, int line) const {
    if (for_depth_ == 0) return;
    if (target.kind == Target::Kind::kName && target.name == kLoopName) {
      fail_at(line, "can't assign to the special variable 'loop' inside a for loop");
    }
    for (const Target& part : target.parts) refuse_loop_name(part, line);
  }

  StmtPtr parse_for() {
    auto node = std::make_unique<ForStmt>(take().line);
    ++for_depth_;
    node->target = parse_target(false, "in");
    refuse_loop_name(node->target, node->line);
    expect_name("in");
    node->iterable = parse_tuple(false, "recursive");
    frames_.enter(nullptr);  // the test has the target as its own name
    declare_target(node->target);
    if (take_name_if("if")) node->test = parse_loop_test();
    frames_.leave();
    node->is_recursive = take_name_if("recursive");
    std::string end;
    {
      const Inside inside(*this, false, breakable_ + 1);
      frames_.enter(&node->body);
      declare_target(node->target);
      frames_.declare(kLoopName);
      end = parse_block(node->body.statements, {"else", "endfor"}, node->line);
      frames_.leave();
    }
    if (end == "else") {
      parse_scope(node->otherwise, "endfor", node->line, node->is_recursive ? 0 : breakable_);
    }
    --for_depth_;
    return node;
  }

  ExprPtr parse_loop_test() {
    const Inside inside(*this, false, breakable_);
    return parse_expression();
  }

  StmtPtr parse_loop_control() {
    const Token token = take();
    if (breakable_ == 0) fail_at(token.line, fmt::format("'{}' outside of a loop", token.text));
    return std::make_unique<LoopControlStmt>(
        token.line, token.text == "break" ? Flow::kBreak : Flow::kContinue);
  }

  StmtPtr parse_set() {
    const int line = take().line;
    Target target = parse_target(true);
    refuse_loop_name(target, line);
    if (take_operator_if("=")) {
      auto node = std::make_unique<SetStmt>(line);
      node->target = std::move(target);
      node->value = parse_tuple(true);
      store_target(node->target);
      return node;
    }
    auto node = std::make_unique<SetBlockStmt>(line);
    node->target = std::move(target);
    store_target(node->target);
    auto& frame = frames_.enter(&node->body);
    node->filter = parse_block_filter(false);
    frames_.leave();
    parse_scope(node->body, "endset", line, breakable_, &frame);
    return node;
  }

  StmtPtr parse_filter_block() {
    auto node = std::make_unique<FilterBlockStmt>(take().line);
    auto& frame = frames_.enter(&node->body);
    node->filter = parse_block_filter(true);
    frames_.leave();
    parse_scope(node->body, "endfilter", node->line, breakable_, &frame);
    return node;
  }

  ExprPtr parse_block_filter(bool starts_inline) {
    const Inside inside(*this, false, breakable_);
    return parse_filters(nullptr, starts_inline);
  }

  StmtPtr parse_with() {
    auto node = std::make_unique<WithStmt>(take().line);
    while (current().type != TokenType::kBlockEnd) {
      if (!node->assignments.empty()) expect_operator(",");
      Target target = parse_target(false);
      expect_operator("=");
      node->assignments.emplace_back(std::move(target), parse_expression());
    }
    auto& frame = frames_.enter(&node->body);
    for (const auto& [target, value] : node->assignments) declare_target(target);
    frames_.leave();
    parse_scope(node->body, "endwith", node->line, breakable_, &frame);
    return node;
  }

  StmtPtr parse_generation() {
    auto node = std::make_unique<ScopeStmt>(take().line);
    parse_scope(node->body, "endgeneration", node->line, 0);
    return node;
  }

  StmtPtr parse_autoescape() {
    auto node = std::make_unique<ScopeStmt>(take().line);
    node->refused_when = parse_expression();
    parse_scope(node->body, "endautoescape", node->line, breakable_);
    return node;
  }

  StmtPtr parse_named_block() {
    auto node = std::make_unique<BlockStmt>(take().line);
    node->name = take_any_name();
    for (const std::string& known : block_names_) {
      if (known == node->name) fail_at(node->line, fmt::format("block '{}' defined twice", known));
    }
    block_names_.push_back(node->name);
    node->is_scoped = take_name_if("scoped");
    node->is_required = take_name_if("required");
    auto& frame = frames_.enter(&node->body, false);
    frames_.leave();
    parse_scope(node->body, "endblock", node->line, 0, &frame);
    take_name_if(node->name);
    return node;
  }

  void parse_signature(MacroDefinition& macro) {
    expect_operator("(");
    while (!current().is_operator(")")) {
      if (!macro.parameters.empty()) expect_operator(",");
      const int line = current().line;
      MacroParameter parameter;
      parameter.name = store_name(take_any_name(), line);
      frames_.declare(parameter.name);
      for (const MacroParameter& other : macro.parameters) {
        if (other.name == parameter.name) fail_at(line, "two parameters have the same name");
      }
      if (take_operator_if("=")) {
        parameter.fallback = parse_expression();
      } else if (!macro.parameters.empty() && macro.parameters.back().fallback != nullptr) {
        fail_at(line, "a parameter without default follows one with a default");
      }
      macro.parameters.push_back(std::move(parameter));
    }
    expect_operator(")");
  }

  void parse_macro_body(MacroDefinition& macro,
                        std::string_view end,
                        int line,
                        SymbolFrames::Frame& frame) {
    macros_.emplace_back();
    parse_scope(macro.body, end, line, 0, &frame);
    const SpecialUse use = macros_.back();
    macros_.pop_back();
    macro.takes_caller = use.uses[0];
    macro.takes_varargs = use.uses[1];
    macro.takes_kwargs = use.uses[2];
    for (const MacroParameter& parameter : macro.parameters) {
      if (parameter.name == kVarargsName) macro.takes_varargs = false;
      if (parameter.name == kKwargsName) macro.takes_kwargs = false;
      if (parameter.name != kCallerName) continue;
      if (macro.takes_caller && parameter.fallback == nullptr) {
        fail_at(line, "the parameter 'caller' must be omitted or have a default");
      }
      macro.takes_caller = false;  // an ordinary parameter
    }
  }

  SymbolFrames::Frame& enter_macro(MacroDefinition& macro) {
    auto& frame = frames_.enter(&macro.body);
    for (const NameId special : {kCallerName, kVarargsName, kKwargsName}) frames_.declare(special);
    return frame;
  }

  StmtPtr parse_macro() {
    auto node = std::make_unique<MacroStmt>(take().line);
    node->macro.name = take_any_name();
    node->name = store_name(node->macro.name, node->line);
    frames_.store(node->name);
    auto& frame = enter_macro(node->macro);
    parse_signature(node->macro);
    frames_.leave();
    parse_macro_body(node->macro, "endmacro", node->line, frame);
    return node;
  }

  StmtPtr parse_call_block() {
    auto node = std::make_unique<CallBlockStmt>(take().line);
    node->caller.name = "caller";
    auto& frame = enter_macro(node->caller);
    if (current().is_operator("(")) parse_signature(node->caller);
    frames_.leave();
    ExprPtr call = parse_expression();
    if (dynamic_cast<CallExpr*>(call.get()) == nullptr) fail_at(node->line, "expected a call");
    node->call.reset(static_cast<CallExpr*>(call.release()));
    parse_macro_body(node->caller, "endcall", node->line, frame);
    return node;
  }

  struct OpenTag {
    int line;
    std::vector<std::string_view> ends;
  };

  std::vector<OpenTag> open_tags_;
  std::vector<std::string> block_names_;
  int breakable_ = 0;
};

const std::array<Parser::Tag, 12> Parser::kTags = {{
    {"if", &Parser::parse_if},
    {"for", &Parser::parse_for},
    {"set", &Parser::parse_set},
    {"macro", &Parser::parse_macro},
    {"call", &Parser::parse_call_block},
    {"filter", &Parser::parse_filter_block},
    {"with", &Parser::parse_with},
    {"break", &Parser::parse_loop_control},
    {"continue", &Parser::parse_loop_control},
    {"generation", &Parser::parse_generation},
    {"autoescape", &Parser::parse_autoescape},
    {"block", &Parser::parse_named_block},
}};

}  // namespace

Program parse_template(std::string_view source, const Limits& limits) {
  if (source.size() > limits.max_source_bytes) {
    fail(fmt::format("the template has {} bytes: at most {} are allowed", source.size(),
                     limits.max_source_bytes));
  }
  return Parser(tokenize(source), limits).run();
}

}  // namespace tgi::jinja
