// The grammar of arguments in the notation of entry_scanner.h.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/ascii.h"
#include "engine/dialect/json_scanner.h"
#include "engine/dialect/schema_notation.h"
#include "engine/guide/regex.h"

namespace tgi::dialect {
namespace {

using guide::Expr;
using guide::Grammar;

class EntryNotation final : public SchemaNotation {
 public:
  EntryNotation(Grammar& grammar,
                const Tool& tool,
                std::string_view quote,
                const IsSpecialToken& is_special)
      : SchemaNotation(grammar, tool), quote_(quote), is_special_(is_special) {
    const std::vector<MarkPiece> pieces = pieces_of(quote, is_special);
    if (!pieces.empty() && !pieces.front().is_special) quote_text_ = pieces.front().text;
  }

 private:
  bool tells_texts() const override { return true; }
  bool writes_null() const override { return true; }
  const std::string& text_end() const override { return quote_text_; }
  Expr written_text(Expr text) override { return quoted(text); }
  bool can_name(std::string_view name) const override {
    return quote_text_.empty() || name.find(quote_text_) == std::string_view::npos;
  }

  // Names in the order in which templates sort them.
  Expr written_members(std::vector<Member> known, std::optional<Expr> other) override {
    std::stable_sort(known.begin(), known.end(), [](const Member& a, const Member& b) {
      return ascii_lower(a.name) < ascii_lower(b.name);
    });
    std::vector<ListEntry> entries;
    for (const Member& member : known) {
      entries.push_back({.name = member.name,
                         .expr = named(written_name(member.name), member.value),
                         .is_required = member.is_required});
    }
    if (other) other = named(other_argument_name(grammar_, names_of(known)), *other);
    return comma_list(grammar_, entries, other);
  }
  Expr object(Expr members) override { return in('{', members, '}'); }

  Expr array(Expr item, int32_t least, int32_t most) override {
    const Expr rest =
        grammar_.repeat(grammar_.sequence({between_items(), item}), std::max(least - 1, 0),
                        most == guide::kUnbounded ? most : most - 1);
    const Expr some = grammar_.sequence({item, rest});
    return in_array(least > 0 ? some : grammar_.optional(some));
  }
  Expr in_array(Expr items) override { return in('[', items, ']'); }
  Expr between_items() override {
    return grammar_.sequence({grammar_.text(","), optional_space(grammar_)});
  }
  Expr written_item(Expr value) override { return value; }
  Expr literal_array(const std::vector<Expr>& items) override {
    std::vector<ListEntry> entries;
    for (const Expr item : items) entries.push_back({.name = "item", .expr = item});
    return in('[', comma_list(grammar_, entries, std::nullopt), ']');
  }

  Expr any_value(Expr value) override {
    const Expr number = grammar_.terminal(parse_regex(
        grammar_.regex(), "-?(0|[1-9][0-9]{0,17})(\\.[0-9]{1,17})?", guide::RegexUse::kWhole));
    return grammar_.either({quoted(text_without(grammar_, {quote_}, is_special_)), number,
                            grammar_.text("true"), grammar_.text("false"), grammar_.text("null"),
                            in('[', comma_list(grammar_, {}, value), ']'),
                            object(written_members({}, value))});
  }

  // Bare where its reader knows it from what is around it.
  Expr written_name(const std::string& name) {
    const bool is_bare = !name.empty() && !is_json_space(name.front()) &&
                         !is_json_space(name.back()) &&
                         name.find_first_of(":,()[]{}<\"'") == std::string::npos;
    return is_bare ? grammar_.text(name) : quoted(grammar_.text(name));
  }
  Expr named(Expr name, Expr value) {
    return grammar_.sequence({name, grammar_.text(":"), optional_space(grammar_), value});
  }
  Expr in(char open, Expr inside, char close) {
    return grammar_.sequence(
        {grammar_.text(std::string(1, open)), inside, grammar_.text(std::string(1, close))});
  }
  Expr quoted(Expr text) {
    const Expr mark = written_mark(grammar_, quote_, is_special_);
    return grammar_.sequence({mark, text, mark});
  }

  const std::string_view quote_;
  const IsSpecialToken& is_special_;
  std::string quote_text_;  // where it is no special token
};

}  // namespace

Expr entry_arguments(Grammar& grammar,
                     const Tool& tool,
                     const CallPart& part,
                     const IsSpecialToken& is_special) {
  return EntryNotation(grammar, tool, part.close, is_special).arguments();
}

}  // namespace tgi::dialect
