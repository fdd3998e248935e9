#include "engine/dialect/element_values.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/bounded_json.h"
#include "base/json_text.h"
#include "engine/dialect/call_reader.h"
#include "engine/dialect/marked_text.h"

namespace tgi::dialect {
namespace {

constexpr int kMaxElementDepth = 64;
constexpr int kMaxChoiceDepth = 16;
constexpr size_t kNowhere = std::string_view::npos;

// The first that a schema or one of its choices says under a word.
template <typename Find>
const OrderedJson* first_in(const OrderedJson* schema,
                            const OrderedJson& root,
                            int depth,
                            Find find) {
  if (schema == nullptr || depth > kMaxChoiceDepth) return nullptr;
  schema = behind_references(*schema, root);
  if (schema == nullptr || !schema->is_object()) return nullptr;
  if (const OrderedJson* const own = find(*schema)) return own;
  for (const char* const word : {"anyOf", "oneOf", "allOf"}) {
    const auto choices = schema->find(word);
    if (choices == schema->end() || !choices->is_array()) continue;
    for (const OrderedJson& each : *choices) {
      if (const OrderedJson* const own = first_in(&each, root, depth + 1, find)) return own;
    }
  }
  return nullptr;
}

const OrderedJson* schema_of_items(const OrderedJson* schema, const OrderedJson& root) {
  return first_in(schema, root, 0, [](const OrderedJson& each) -> const OrderedJson* {
    const auto items = each.find("items");
    return items == each.end() ? nullptr : &*items;
  });
}

struct Element {
  std::string name;
  std::string_view inside;
};

class ElementParser {
 public:
  ElementParser(std::string_view mark, const OrderedJson& root) : mark_(mark), root_(root) {}

  bool value(std::string_view text, const OrderedJson* schema, int depth, OrderedJson& out) const {
    if (depth > kMaxElementDepth) return false;
    const uint8_t types = schema == nullptr ? uint8_t{kAllBits} : types_of(*schema, root_);
    if (text.find(mark_) == kNowhere) return leaf(text, types, out);
    std::vector<Element> elements;
    if (!split(text, elements)) return false;
    const bool are_items =
        std::all_of(elements.begin(), elements.end(),
                    [](const Element& element) { return element.name == kItemElement; });
    const bool is_array = are_items && ((types & kArrayBit) != 0 || (types & kObjectBit) == 0);
    out = is_array ? OrderedJson::array() : OrderedJson::object();
    const OrderedJson* const of_items = is_array ? schema_of_items(schema, root_) : nullptr;
    for (const Element& element : elements) {
      OrderedJson inner;
      const OrderedJson* const own =
          is_array ? of_items : schema_of_member(schema, element.name, root_);
      if (!value(element.inside, own, depth + 1, inner)) return false;
      if (is_array) {
        out.push_back(std::move(inner));
      } else {
        out[element.name] = std::move(inner);
      }
    }
    return true;
  }

 private:
  static bool leaf(std::string_view text, uint8_t types, OrderedJson& out) {
    if (text.empty() && (types & kStringBit) == 0) {
      if ((types & (kArrayBit | kObjectBit)) == 0) return false;
      out = (types & kArrayBit) != 0 ? OrderedJson::array() : OrderedJson::object();
      return true;
    }
    out = json_or_discarded(json_of_parameter(unmarked(text), types));
    return !out.is_discarded();
  }

  bool split(std::string_view text, std::vector<Element>& out) const {
    for (;;) {
      while (!text.empty() && is_json_space(text.front())) text.remove_prefix(1);
      if (text.empty()) return true;
      if (!text.starts_with(mark_)) return false;
      text.remove_prefix(mark_.size());
      const size_t name_end = text.find('>');
      if (!text.starts_with('<') || text.starts_with("</") || name_end == kNowhere) return false;
      Element& element = out.emplace_back();
      element.name = unmarked(text.substr(1, name_end - 1));
      text.remove_prefix(name_end + 1);
      const size_t end = ElementScanner().find_end(text, mark_);
      if (end == kNowhere) return false;
      element.inside = text.substr(0, end);
      const size_t close = text.find('>', end + mark_.size());
      if (close == kNowhere) return false;
      text.remove_prefix(close + 1);
    }
  }

  const std::string_view mark_;
  const OrderedJson& root_;
};

}  // namespace

const OrderedJson* schema_of_member(const OrderedJson* schema,
                                    std::string_view name,
                                    const OrderedJson& root) {
  return first_in(schema, root, 0, [&](const OrderedJson& each) -> const OrderedJson* {
    const auto properties = each.find("properties");
    if (properties != each.end() && properties->is_object()) {
      const auto own = properties->find(std::string(name));
      if (own != properties->end()) return &*own;
    }
    const auto others = each.find("additionalProperties");
    return others != each.end() && others->is_object() ? &*others : nullptr;
  });
}

std::string json_of_elements(std::string_view value,
                             std::string_view mark,
                             const OrderedJson* schema,
                             const OrderedJson& root) {
  OrderedJson out;
  if (!ElementParser(mark, root).value(value, schema, 0, out)) return {};
  return out.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

size_t ElementScanner::find_end(std::string_view text, std::string_view mark) {
  for (;;) {
    const size_t found = text.find(mark, at_);
    if (found == kNowhere) {
      at_ = std::max(at_, text.size() - length_of_begun(text, mark));
      return kNowhere;
    }
    at_ = found;
    const std::string_view tag = text.substr(found + mark.size());
    if (tag.size() < 2) return kNowhere;
    if (tag.starts_with("</")) {
      if (depth_ == 0) return found;
      --depth_;
    } else {
      ++depth_;
    }
    at_ = found + mark.size();
  }
}

}  // namespace tgi::dialect
