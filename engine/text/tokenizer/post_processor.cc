#include "engine/text/tokenizer/post_processor.h"

#include <algorithm>
#include <limits>

#include "base/utf8.h"
#include "engine/text/tokenizer/component_list.h"
#include "engine/text/unicode/unicode.h"

namespace tgi {
namespace {

constexpr char32_t kByteLevelSpace = 0x120;  // how the byte-level alphabet writes a space

int32_t read_id(const Json& value, const std::string& path) {
  if (value.is_number_integer()) {
    const auto id = value.get<int64_t>();
    if (id >= 0 && id <= std::numeric_limits<int32_t>::max()) return static_cast<int32_t>(id);
  }
  throw Error(Code::kInvalidArgument, fmt::format("{}: expected a token id", path));
}

std::vector<int32_t> read_ids(const JsonReader& token) {
  const auto found = token.json().find("ids");
  if (found == token.json().end() || !found->is_array()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected an array of token ids", token.path_of("ids")));
  }
  std::vector<int32_t> ids;
  for (const Json& id : *found) ids.push_back(read_id(id, token.path_of("ids")));
  return ids;
}

// ["</s>", 2]
int32_t read_pair(const JsonReader& component, std::string_view key) {
  const auto found = component.json().find(std::string(key));
  if (found == component.json().end() || !found->is_array() || found->size() != 2) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected [token, id]", component.path_of(key)));
  }
  return read_id((*found)[1], component.path_of(key));
}

int32_t read_type(const JsonReader& piece) {
  const int64_t type = piece.integer_or("type_id", 0);
  if (type >= 0 && type <= std::numeric_limits<int32_t>::max()) return static_cast<int32_t>(type);
  throw Error(Code::kInvalidArgument,
              fmt::format("{}: expected 0 or more, got {}", piece.path_of("type_id"), type));
}

// As many characters as the token has white space at its ends.
void trim_span(const std::string& token, bool leaves_first_space, bool is_first, TextSpan& span) {
  std::vector<bool> is_space;
  for (size_t at = 0; at < token.size();) {
    const char32_t character = next_character(token, at);
    is_space.push_back(character == kByteLevelSpace || is_white_space(character));
  }
  const auto count = [](auto begin, auto end) { return std::find(begin, end, false) - begin; };
  int64_t leading = count(is_space.begin(), is_space.end());
  const int64_t trailing = count(is_space.rbegin(), is_space.rend());
  if (leading > 0) {
    // One space may have been put there; of more, none was.
    if ((is_first || span.start == 0) && leaves_first_space && leading == 1) leading = 0;
    span.start = std::min(span.start + leading, span.stop);
  }
  if (trailing > 0 && span.stop >= trailing) {
    span.stop = std::max(span.stop - trailing, span.start);
  }
}

constexpr std::string_view kKnown =
    "Sequence, TemplateProcessing, ByteLevel, RobertaProcessing, BertProcessing";

}  // namespace

PostProcessor::PostProcessor(const JsonReader& component) {
  for_each_component(component, "processors",
                     [this](const JsonReader& each, const std::string& type) { add(each, type); });
}

PostProcessor::PostProcessor(std::vector<int32_t> before, std::vector<int32_t> after) {
  add_ends(std::move(before), std::move(after));
}

void PostProcessor::add_ends(std::vector<int32_t> before, std::vector<int32_t> after) {
  Template ends;
  ends.single = {{Part::kSpecial, before}, {Part::kFirst, {}}, {Part::kSpecial, after}};
  ends.pair = ends.single;
  ends.pair.push_back({Part::kSpecial, std::move(before), 1});
  ends.pair.push_back({Part::kSecond, {}, 1});
  ends.pair.push_back({Part::kSpecial, std::move(after), 1});
  templates_.push_back(std::move(ends));
}

void PostProcessor::add(const JsonReader& component, const std::string& type) {
  if (type == "TemplateProcessing") {
    add_template(component);
  } else if (type == "RobertaProcessing" || type == "BertProcessing") {
    add_sep_and_cls(component);
  } else if (type == "ByteLevel") {
    add_trim(component);
  } else {
    fail_unknown_type(component, type, kKnown);
  }
}

void PostProcessor::add_template(const JsonReader& component) {
  Template parts;
  parts.single = read_parts(component, "single");
  if (component.has("pair")) parts.pair = read_parts(component, "pair");
  templates_.push_back(std::move(parts));
}

std::vector<PostProcessor::Part> PostProcessor::read_parts(const JsonReader& component,
                                                           std::string_view list) {
  const bool is_pair = list == "pair";
  std::vector<Part> parts;
  for (const JsonReader& piece : component_list(component, list)) {
    if (piece.has("Sequence")) {
      const JsonReader sequence = piece.object("Sequence");
      const std::string id = sequence.string("id");
      if (id != "A" && !(is_pair && id == "B")) {
        throw Error(Code::kInvalidArgument,
                    fmt::format("{}: {}, got \"{}\"", sequence.path_of("id"),
                                is_pair ? "the texts of a pair are sequences \"A\" and \"B\""
                                        : "a single text is sequence \"A\"",
                                id));
      }
      parts.push_back({id == "A" ? Part::kFirst : Part::kSecond, {}, read_type(sequence)});
      continue;
    }
    const JsonReader special = piece.object("SpecialToken");
    const std::string name = special.string("id");
    const JsonReader tokens = component.object("special_tokens");
    if (!tokens.has(name)) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: \"{}\" is not in {}", special.path_of("id"), name,
                              component.path_of("special_tokens")));
    }
    parts.push_back({Part::kSpecial, read_ids(tokens.object(name)), read_type(special)});
  }
  return parts;
}

void PostProcessor::add_sep_and_cls(const JsonReader& component) {
  const bool is_roberta = component.string("type") == "RobertaProcessing";
  if (is_roberta) add_trim(component);
  const Part before{Part::kSpecial, {read_pair(component, "cls")}};
  const int32_t sep = read_pair(component, "sep");
  const Part after{Part::kSpecial, {sep}};
  Template parts;
  parts.single = {before, {Part::kFirst, {}}, after};
  parts.pair = parts.single;
  if (is_roberta) parts.pair.push_back(after);
  const int32_t second_type = is_roberta ? 0 : 1;
  parts.pair.push_back({Part::kSecond, {}, second_type});
  parts.pair.push_back({Part::kSpecial, {sep}, second_type});
  templates_.push_back(std::move(parts));
}

void PostProcessor::add_trim(const JsonReader& component) {
  if (!component.boolean_or("trim_offsets", true)) return;
  trims_.push_back({templates_.size(), component.boolean_or("add_prefix_space", true)});
}

void PostProcessor::apply(std::vector<int32_t>& ids, bool add_special) const {
  apply(ids, add_special, nullptr, {});
}

void PostProcessor::apply(std::vector<int32_t>& ids,
                          bool add_special,
                          std::vector<TextSpan>* spans,
                          const TokenOf& token_of) const {
  const auto trim_before = [&](size_t index) {
    for (const Trim& trim : trims_) {
      if (spans == nullptr || trim.before_template != index) continue;
      for (size_t i = 0; i < ids.size(); ++i) {
        trim_span(token_of(ids[i]), trim.leaves_first_space, i == 0, (*spans)[i]);
      }
    }
  };
  for (size_t index = 0; index < templates_.size(); ++index) {
    trim_before(index);
    std::vector<int32_t> processed;
    std::vector<TextSpan> processed_spans;
    for (const Part& part : templates_[index].single) {
      const bool is_text = part.kind == Part::kFirst;
      if (!is_text && !add_special) continue;
      const std::vector<int32_t>& added = is_text ? ids : part.ids;
      processed.insert(processed.end(), added.begin(), added.end());
      if (spans == nullptr) continue;
      if (is_text) {
        processed_spans.insert(processed_spans.end(), spans->begin(), spans->end());
      } else {
        processed_spans.resize(processed_spans.size() + added.size());
      }
    }
    ids = std::move(processed);
    if (spans != nullptr) *spans = std::move(processed_spans);
  }
  trim_before(templates_.size());
}

TypedIds PostProcessor::join(const std::vector<Part>& parts,
                             const TypedIds& first,
                             const TypedIds& second,
                             bool add_special) {
  TypedIds result;
  const auto add = [&result](const auto& from, auto TypedIds::*list) {
    (result.*list).insert((result.*list).end(), from.begin(), from.end());
  };
  for (const Part& part : parts) {
    if (part.kind == Part::kSpecial && !add_special) continue;
    if (part.kind == Part::kSpecial) {
      add(part.ids, &TypedIds::ids);
    } else {
      const TypedIds& text = part.kind == Part::kFirst ? first : second;
      add(text.ids, &TypedIds::ids);
      add(text.parts, &TypedIds::parts);
    }
    result.type_ids.resize(result.ids.size(), part.type_id);
    result.parts.resize(result.ids.size(), TokenPart::kAdded);
  }
  return result;
}

TypedIds PostProcessor::bare(std::vector<int32_t> ids, TokenPart part) {
  TypedIds result{.ids = std::move(ids)};
  result.type_ids.resize(result.ids.size(), 0);
  result.parts.resize(result.ids.size(), part);
  return result;
}

TypedIds PostProcessor::apply_single(std::vector<int32_t> ids, bool add_special) const {
  TypedIds result = bare(std::move(ids), TokenPart::kFirst);
  for (const Template& parts : templates_) {
    result = join(parts.single, result, {}, add_special);
  }
  return result;
}

TypedIds PostProcessor::apply_pair(std::vector<int32_t> first,
                                   std::vector<int32_t> second,
                                   bool add_special) const {
  static const std::vector<Part> kBare = {{Part::kFirst, {}, 0}, {Part::kSecond, {}, 1}};
  if (templates_.size() > 1 || (!templates_.empty() && templates_[0].pair.empty())) {
    throw Error(Code::kUnsupported,
                "pairs of texts: the post_processor of tokenizer.json doesn't say how they are put "
                "together");
  }
  return join(templates_.empty() ? kBare : templates_[0].pair,
              bare(std::move(first), TokenPart::kFirst),
              bare(std::move(second), TokenPart::kSecond), add_special);
}

}  // namespace tgi
