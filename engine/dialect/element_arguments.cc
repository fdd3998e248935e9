// The grammar of arguments in the notation of element_values.h.
#include <optional>
#include <string>
#include <vector>

#include "engine/dialect/element_values.h"
#include "engine/dialect/schema_notation.h"

namespace tgi::dialect {
namespace {

using guide::Expr;
using guide::Grammar;

class ElementNotation final : public SchemaNotation {
 public:
  ElementNotation(Grammar& grammar,
                  const Tool& tool,
                  std::string_view mark,
                  const IsSpecialToken& is_special)
      : SchemaNotation(grammar, tool), mark_(mark), is_special_(is_special) {
    const std::vector<MarkPiece> pieces = pieces_of(mark, is_special);
    if (!pieces.empty() && !pieces.front().is_special) mark_text_ = pieces.front().text;
  }

 private:
  bool tells_texts() const override { return false; }
  bool writes_null() const override { return false; }
  const std::string& text_end() const override { return mark_text_; }
  Expr written_text(Expr text) override { return text; }
  bool can_name(std::string_view name) const override {
    return !name.empty() && name.front() != '/' && name.find('>') == std::string_view::npos &&
           (mark_text_.empty() || name.find(mark_text_) == std::string_view::npos);
  }

  Expr written_members(std::vector<Member> known, std::optional<Expr> other) override {
    std::vector<Expr> out;
    for (const Member& member : known) {
      const Expr name = grammar_.text(member.name);
      const Expr one = element(name, member.value);
      out.push_back(member.is_required ? one : grammar_.optional(one));
    }
    if (other) {
      const Expr name = other_argument_name(grammar_, names_of(known));
      out.push_back(grammar_.repeat(element(name, *other), 0, guide::kUnbounded));
    }
    return grammar_.sequence(out);
  }
  Expr object(Expr members) override { return members; }

  Expr array(Expr item, int32_t least, int32_t most) override {
    return grammar_.repeat(written_item(item), least, most);
  }
  Expr in_array(Expr items) override { return items; }
  Expr between_items() override { return grammar_.empty_text(); }
  Expr written_item(Expr value) override { return element(item_name(), value); }
  Expr literal_array(const std::vector<Expr>& items) override {
    std::vector<Expr> out = {grammar_.empty_text()};
    for (const Expr item : items) out.push_back(element(item_name(), item));
    return grammar_.sequence(out);
  }

  Expr any_value(Expr value) override {
    const Expr one = element(other_argument_name(grammar_, {}), value);
    return grammar_.either(
        {text_without(grammar_, {mark_}, is_special_), grammar_.repeat(one, 1, guide::kUnbounded)});
  }

  Expr item_name() { return grammar_.text(std::string(kItemElement)); }
  Expr element(Expr name, Expr value) {
    const Expr mark = written_mark(grammar_, mark_, is_special_);
    return grammar_.sequence({mark, grammar_.text("<"), name, grammar_.text(">"), value, mark,
                              grammar_.text("</"), name, grammar_.text(">")});
  }

  const std::string_view mark_;
  const IsSpecialToken& is_special_;
  std::string mark_text_;  // where it is no special token
};

}  // namespace

Expr element_arguments(Grammar& grammar,
                       const Tool& tool,
                       const CallPart& part,
                       const IsSpecialToken& is_special) {
  return ElementNotation(grammar, tool, part.open, is_special).arguments();
}

}  // namespace tgi::dialect
