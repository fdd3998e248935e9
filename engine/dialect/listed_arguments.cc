#include "engine/dialect/listed_arguments.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/dialect/tool_schema.h"

namespace tgi::dialect {
namespace {

constexpr int kMaxDepth = 16;
constexpr size_t kMaxVisited = 2000;  // branches that refer to each other come to any number

OrderedJson reference_to(std::string place) {
  return {{"$ref", std::move(place)}};
}

const OrderedJson* find_member(const OrderedJson& schema, const std::string& word) {
  const auto found = schema.find(word);
  return found == schema.end() ? nullptr : &*found;
}

// What a reference leads to, where nothing that limits stands beside it; the definitions, which
// other references need, stay where they are.
OrderedJson behind_root_reference(OrderedJson root) {
  constexpr std::array<std::string_view, 9> kBeside = {
      "$ref", "$defs", "definitions", "$schema", "$id", "type", "title", "description", "$comment"};
  constexpr std::array<const char*, 3> kOfRoot = {"$schema", "$defs", "definitions"};
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    const OrderedJson* const reference = find_member(root, "$ref");
    if (reference == nullptr || !reference->is_string() || !has_only(root, kBeside)) break;
    if (root.value("type", OrderedJson("object")) != OrderedJson("object")) break;
    const OrderedJson* const target = resolve_local(root, reference->get_ref<const std::string&>());
    if (target == nullptr || !target->is_object()) break;
    OrderedJson next = *target;
    for (const char* const word : kOfRoot) {
      if (root.contains(word)) next[word] = root[word];
    }
    root = std::move(next);
  }
  return root;
}

// Arguments by their names, in the order in which they were found. Each schema is a reference into
// the root, or several of them together.
class Named {
 public:
  struct Argument {
    std::string name;
    OrderedJson schema;
  };

  // `how`: "allOf" where the schemas hold together, "anyOf" where one of them does.
  void add(const Argument& argument, const char* how) {
    const auto known = std::ranges::find(all_, argument.name, &Argument::name);
    if (known == all_.end()) {
      all_.push_back(argument);
      return;
    }
    if (known->schema == argument.schema) return;
    if (!known->schema.contains(how)) known->schema = {{how, {known->schema}}};
    add_new(argument.schema, known->schema[how]);
  }
  void add_other(const OrderedJson& schema) { add_new(schema, others_); }
  void require(const OrderedJson& name) { add_new(name, required_); }
  void require_none() { required_.clear(); }

  void add_all(const Named& other) {
    for (const OrderedJson& name : other.required_) require(name);
    add_arguments(other, "allOf");
  }
  // What is required of one branch alone is required of none.
  void add_branch(const Named& branch, bool is_first) {
    const auto is_of_none = [&](const OrderedJson& name) {
      return std::ranges::find(branch.required_, name) == branch.required_.end();
    };
    if (is_first) {
      required_ = branch.required_;
    } else {
      required_.erase(std::remove_if(required_.begin(), required_.end(), is_of_none),
                      required_.end());
    }
    add_arguments(branch, "anyOf");
  }

  const std::vector<Argument>& all() const { return all_; }
  const OrderedJson& required() const { return required_; }
  const OrderedJson& others() const { return others_; }

 private:
  static void add_new(const OrderedJson& value, OrderedJson& to) {
    if (std::ranges::find(to, value) == to.end()) to.push_back(value);
  }
  void add_arguments(const Named& other, const char* how) {
    for (const Argument& each : other.all_) add(each, how);
    for (const OrderedJson& each : other.others_) add_other(each);
  }

  std::vector<Argument> all_;
  OrderedJson required_ = OrderedJson::array();  // names, of which some may be none of all()
  OrderedJson others_ = OrderedJson::array();    // of arguments under other names
};

class ArgumentFinder {
 public:
  explicit ArgumentFinder(const OrderedJson& root) : root_(root) {}

  Named find_in(const OrderedJson& schema, const std::string& place, int depth = 0) {
    Named out;
    if (!schema.is_object() || depth > kMaxDepth || ++num_visited_ > kMaxVisited) return out;
    add_own(schema, place, out);
    if (const OrderedJson* const reference = find_member(schema, "$ref");
        reference != nullptr && reference->is_string()) {
      const std::string& target = reference->get_ref<const std::string&>();
      const OrderedJson* const found = resolve_local(root_, target);
      if (found != nullptr) out.add_all(find_in(*found, target, depth + 1));
    }
    for (const Part& part : branches_of(schema, "allOf", place)) {
      out.add_all(find_in(*part.schema, part.place, depth + 1));
    }
    for (const char* const word : {"anyOf", "oneOf"}) {
      Named branches;
      bool is_first = true;
      for (const Part& part : branches_of(schema, word, place)) {
        branches.add_branch(find_in(*part.schema, part.place, depth + 1),
                            std::exchange(is_first, false));
      }
      out.add_all(branches);
    }
    add_conditional(schema, place, depth, out);
    for (const std::string& name : required_names(schema)) out.require(name);
    return out;
  }

 private:
  struct Part {
    std::string name;  // of a member
    const OrderedJson* schema;
    std::string place;
  };

  static std::vector<Part> parts_of(const OrderedJson& parts, const std::string& place) {
    std::vector<Part> out;
    for (const auto& item : parts.items()) {
      out.push_back({item.key(), &item.value(), place + pointer_step(item.key())});
    }
    return out;
  }
  static std::vector<Part> branches_of(const OrderedJson& schema,
                                       const std::string& word,
                                       const std::string& place) {
    const OrderedJson* const parts = find_member(schema, word);
    if (parts == nullptr || !parts->is_array()) return {};
    return parts_of(*parts, place + "/" + word);
  }
  static std::vector<Part> members_of(const OrderedJson& schema,
                                      const std::string& word,
                                      const std::string& place) {
    const OrderedJson* const parts = find_member(schema, word);
    if (parts == nullptr || !parts->is_object()) return {};
    return parts_of(*parts, place + "/" + word);
  }

  static void add_own(const OrderedJson& schema, const std::string& place, Named& to) {
    for (const Part& part : members_of(schema, "properties", place)) {
      to.add({.name = part.name, .schema = reference_to(part.place)}, "allOf");
    }
    for (const Part& part : members_of(schema, "patternProperties", place)) {
      to.add_other(reference_to(part.place));
    }
    const OrderedJson* const others = find_member(schema, "additionalProperties");
    if (others != nullptr && (others->is_object() || *others == OrderedJson(true))) {
      to.add_other(reference_to(place + "/additionalProperties"));
    }
  }

  // Arguments that may be there.
  void add_conditional(const OrderedJson& schema, const std::string& place, int depth, Named& to) {
    Named found;
    for (const char* const word : {"then", "else"}) {
      const OrderedJson* const part = find_member(schema, word);
      if (part != nullptr) found.add_all(find_in(*part, place + "/" + word, depth + 1));
    }
    for (const char* const word : {"dependentSchemas", "dependencies"}) {
      for (const Part& part : members_of(schema, word, place)) {
        found.add_all(find_in(*part.schema, part.place, depth + 1));
      }
    }
    found.require_none();
    to.add_all(found);
  }

  const OrderedJson& root_;
  size_t num_visited_ = 0;
};

// What the root lists itself is left as it is.
void list_what_branches_name(OrderedJson& root) {
  const Named found = ArgumentFinder(root).find_in(root, "#");
  OrderedJson listed = OrderedJson::object();
  if (root.contains("properties") && root["properties"].is_object()) listed = root["properties"];
  for (const Named::Argument& each : found.all()) {
    if (!listed.contains(each.name)) listed[each.name] = each.schema;
  }
  if (!listed.empty()) root["properties"] = std::move(listed);
  if (!found.required().empty()) root["required"] = found.required();
  root.erase("$ref");  // in draft-07 it hides what is beside it
  const OrderedJson others = root.value("additionalProperties", OrderedJson());
  const bool are_told = others.is_object() || others.is_boolean();
  if (!found.others().empty() && (!are_told || root.contains("patternProperties"))) {
    root["additionalProperties"] = {{"anyOf", found.others()}};
  }
}

}  // namespace

Tool with_listed_arguments(const Tool& tool) {
  Tool out = tool;
  out.parameters = behind_root_reference(tool.parameters);
  if (!tool.strict) list_what_branches_name(out.parameters);
  return out;
}

}  // namespace tgi::dialect
