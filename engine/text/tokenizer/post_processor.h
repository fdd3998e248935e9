// The "post_processor" of tokenizer.json: what goes around the ids of a text or between those of a
// pair (BOS and the like), and the types of all of them. Immutable.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/text/token_pairs.h"
#include "engine/text/token_spans.h"

namespace tgi {

class PostProcessor {
 public:
  PostProcessor() = default;  // adds nothing

  // component: the object under "post_processor". Throws kInvalidArgument or kUnsupported with its
  // path.
  explicit PostProcessor(const JsonReader& component);

  // Just these ids around the text.
  PostProcessor(std::vector<int32_t> before, std::vector<int32_t> after);

  // Puts these ids around what it gives so far.
  void add_ends(std::vector<int32_t> before, std::vector<int32_t> after);

  void apply(std::vector<int32_t>& ids, bool add_special) const;

  // With the types and parts of the ids.
  TypedIds apply_single(std::vector<int32_t> ids, bool add_special) const;

  // Throws kUnsupported when the file doesn't say what a pair is.
  TypedIds apply_pair(std::vector<int32_t> first,
                      std::vector<int32_t> second,
                      bool add_special) const;

  // Also gives the ids' spans, (0, 0) for those it adds. token_of: as the vocabulary spells it.
  using TokenOf = std::function<std::string(int32_t id)>;
  void apply(std::vector<int32_t>& ids,
             bool add_special,
             std::vector<TextSpan>* spans,
             const TokenOf& token_of) const;

  bool adds_nothing() const { return templates_.empty(); }

 private:
  // One piece of a template: a text, or ids.
  struct Part {
    enum Kind { kFirst, kSecond, kSpecial } kind;
    std::vector<int32_t> ids;  // when kSpecial
    int32_t type_id = 0;
  };
  struct Template {
    std::vector<Part> single;
    std::vector<Part> pair;  // empty: the file has none
  };
  // Takes the white space at the ends of tokens out of their spans. Comes before the template of
  // the same number.
  struct Trim {
    size_t before_template;
    bool leaves_first_space;  // which the pre-tokenizer added
  };

  void add(const JsonReader& component, const std::string& type);
  static TypedIds bare(std::vector<int32_t> ids, TokenPart part);
  static TypedIds join(const std::vector<Part>& parts,
                       const TypedIds& first,
                       const TypedIds& second,
                       bool add_special);
  void add_template(const JsonReader& component);
  static std::vector<Part> read_parts(const JsonReader& component, std::string_view list);
  void add_sep_and_cls(const JsonReader& component);
  void add_trim(const JsonReader& component);

  std::vector<Trim> trims_;
  std::vector<Template> templates_;  // each is applied to what the one before gave
};

}  // namespace tgi
