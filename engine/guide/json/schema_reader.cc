#include "engine/guide/json/schema_reader.h"

#include <utility>

#include "engine/guide/json/keywords.h"

namespace tgi::guide {
namespace {

// Counts a level of recursion for as long as it lives.
class Level {
 public:
  explicit Level(int32_t& depth) : depth_(depth) { ++depth_; }
  ~Level() { --depth_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  int32_t& depth_;
};

}  // namespace

SchemaReader::SchemaReader(RegexPool& pool, const OrderedJson& root)
    : pool_(pool), document_(root), algebra_(pool, demands_) {
  algebra_.is_surely_empty = [this](Demand demand) { return is_surely_empty(demand); };
}

const Alternatives& SchemaReader::alternatives(Demand demand) {
  const auto [place, is_new] = demand_entries_.try_emplace(demand.id);
  Entry& entry = place->second;
  if (entry.is_done) return entry.alternatives;
  if (!is_new) throw NeedsItself{demands_.path(demand)};
  try {
    Alternatives result;
    for (const JsonType type : kJsonTypes) result.push_back(every_value(type));
    const std::string at = demands_.path(demand);
    for (const DemandLiteral& part : demands_.literals(demand)) {
      result = algebra_.both(result, literal(part), at);
    }
    Entry& done = demand_entries_.at(demand.id);
    done.alternatives = std::move(result);
    done.is_done = true;
    return done.alternatives;
  } catch (const NeedsItself& need) {
    demand_entries_.erase(demand.id);
    if (depth_ > 0 || proofs_ > 0) throw;
    reject_schema(need.path, "the schema refers to itself without a step into a member or an item");
  } catch (...) {
    demand_entries_.erase(demand.id);
    throw;
  }
}

const Alternatives& SchemaReader::literal(DemandLiteral literal) {
  constexpr int32_t kMaxDepth = 150;
  const auto [place, is_new] = literals_.try_emplace(literal);
  Entry& entry = place->second;
  if (entry.is_done) return entry.alternatives;
  const SchemaPlace* schema = demands_.node(literal).place;
  const std::string path = schema == nullptr ? "#" : schema->path;
  if (!is_new) throw NeedsItself{path};
  try {
    const Level level(depth_);
    if (depth_ > kMaxDepth) {
      reject_schema(path, "allOf, anyOf, $ref and the like are nested too deeply");
    }
    entry.alternatives = read_literal(literal);
  } catch (const Error& error) {
    literals_.erase(literal);
    throw with_place(error, path);
  } catch (...) {
    literals_.erase(literal);
    throw;
  }
  entry.is_done = true;
  return entry.alternatives;
}

Alternatives SchemaReader::read_literal(DemandLiteral literal) {
  const DemandNode& node = demands_.node(literal);
  if (literal.negated) {
    const std::string at = node.place == nullptr ? "#" : node.place->path;
    return complement_of(this->literal({literal.node, false}), at);
  }
  switch (node.kind) {
    case DemandNode::Kind::kSchema:
      return read_schema(*node.place);
    case DemandNode::Kind::kConstant:
      return constant(*node.constant);
    case DemandNode::Kind::kChoice:
      break;
  }
  Alternatives result;
  for (const Demand choice : node.choices) {
    Alternatives values;
    for (const JsonType type : kJsonTypes) values.push_back(every_value(type));
    for (const DemandLiteral& part : demands_.literals(choice)) {
      values = algebra_.both(values, this->literal(part), "#");
    }
    algebra_.add(result, values, "#");
  }
  return result;
}

// A proof may need what is being read just now, or go too deep: then there is none.
bool SchemaReader::is_surely_empty(Demand demand) {
  constexpr int32_t kMaxProofs = 4;
  if (demand == kNothing) return true;
  if (demand == kAnything || proofs_ >= kMaxProofs) return false;
  const Level level(proofs_);
  try {
    return alternatives(demand).empty();
  } catch (const NeedsItself&) {
    return false;
  } catch (const Error&) {
    return false;
  }
}

Alternatives SchemaReader::read_schema(const SchemaPlace& schema) {
  const OrderedJson& json = *schema.json;
  if (!json.is_boolean() && !json.is_object()) {
    reject_schema(schema.path,
                  "expected a schema, an object or a boolean, got " + described_json(json));
  }
  Alternatives values;
  for (const JsonType type : kJsonTypes) values.push_back(every_value(type));
  if (json.is_boolean()) return json.get<bool>() ? values : Alternatives();
  if (schema.draft == Draft::k7 && json.contains("$ref")) {
    apply_references(schema, values);  // what is beside a $ref does not count
    return values;
  }
  check_keywords(schema);
  values = types(schema);
  limit_numbers(schema, values);
  limit_strings(schema, values);
  limit_arrays(schema, values);
  limit_objects(schema, values);
  if (const OrderedJson* list = member(schema, "enum")) {
    values = algebra_.both(values, listed_values(schema, *list), schema.path + "/enum");
  }
  if (const OrderedJson* value = member(schema, "const")) {
    check_digits(*value, schema.path + "/const");
    values = algebra_.both(values, constant(*value), schema.path + "/const");
  }
  apply_references(schema, values);
  apply_all(schema, values);
  apply_dependencies(schema, values);
  apply_any(schema, values);
  apply_one(schema, values);
  apply_not(schema, values);
  apply_condition(schema, values);
  apply_unevaluated(schema, values);
  return values;
}

Demand SchemaReader::subschema(const OrderedJson& json, const std::string& at) {
  if (!json.is_object() && !json.is_boolean()) {
    reject_schema(at, "expected a schema, an object or a boolean, got " + described_json(json));
  }
  return demands_.schema(document_.place_of(json));
}

const Alternatives& SchemaReader::alternatives_of(const OrderedJson& json, const std::string& at) {
  const Demand demand = subschema(json, at);
  if (demand == kAnything || demand == kNothing) return alternatives(demand);
  return literal(demands_.literals(demand).front());
}

namespace {

template <typename Negation>
Alternatives negated(const std::string& at, const Negation& negation) {
  try {
    return negation();
  } catch (const Error& error) {
    if (error.code() != Code::kUnsupported) throw;
    refuse_schema(at,
                  std::string("what does not satisfy this cannot be enforced: ") + error.what());
  }
}

}  // namespace

Alternatives SchemaReader::complement_of(const Alternatives& values, const std::string& at) {
  return negated(at, [&] { return algebra_.complement(values, at); });
}

Alternatives SchemaReader::without(const Alternatives& values,
                                   const Alternatives& taken,
                                   const std::string& at) {
  return negated(at, [&] { return algebra_.without(values, taken, at); });
}

const OrderedJson* SchemaReader::member(const SchemaPlace& schema, const char* keyword) const {
  const auto found = schema.json->find(keyword);
  return found == schema.json->end() ? nullptr : &*found;
}

std::optional<int64_t> SchemaReader::count(const SchemaPlace& schema, const char* keyword) const {
  const OrderedJson* value = member(schema, keyword);
  if (value == nullptr) return std::nullopt;
  const std::string at = schema.path + "/" + keyword;
  constexpr size_t kMaxDigits = 15;
  if (value->is_number()) {
    const Decimal number = Decimal::of(*value);
    if (number.is_integer() && !number.negative) {
      if (number.integer.size() > kMaxDigits) {
        reject_schema(at, number.integer + " is too large for a count");
      }
      return std::stoll(number.integer);
    }
  }
  reject_schema(at, "expected a whole number that is not negative, got " + described_json(*value));
}

Regex SchemaReader::pattern(const std::string& text, const std::string& at) {
  try {
    return parse_regex(pool_, text, RegexUse::kSearch);
  } catch (const Error& error) {
    throw with_place(error, at);
  }
}

}  // namespace tgi::guide
