// What a value has to satisfy: all of a set of schemas, constants and choices, each as it is or
// negated. Equal demands have equal ids, so that recursive schemas end and each is printed once.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/guide/json/schema_document.h"

namespace tgi::guide {

struct Demand {
  int32_t id = 0;
  friend auto operator<=>(Demand, Demand) = default;
};

inline constexpr Demand kAnything{0};
inline constexpr Demand kNothing{1};

// A part of a demand: one of nodes().
struct DemandLiteral {
  int32_t node = 0;
  bool negated = false;
  friend auto operator<=>(DemandLiteral, DemandLiteral) = default;
};

struct DemandNode {
  enum class Kind { kSchema, kConstant, kChoice };

  Kind kind = Kind::kSchema;
  const SchemaPlace* place = nullptr;     // of a schema
  const OrderedJson* constant = nullptr;  // of the document, too
  std::vector<Demand> choices;            // one of them
};

// Not thread-safe.
class Demands {
 public:
  Demands();

  Demand schema(const SchemaPlace& place);
  Demand constant(const OrderedJson& value);
  Demand any_of(std::vector<Demand> choices);
  Demand both(Demand a, Demand b);
  Demand negated(Demand a);

  const std::vector<DemandLiteral>& literals(Demand a) const {
    return *literals_[static_cast<size_t>(a.id)];
  }
  const DemandNode& node(DemandLiteral literal) const {
    return nodes_[static_cast<size_t>(literal.node)];
  }
  size_t size() const { return literals_.size(); }
  // For people: the path of the first schema in it.
  std::string path(Demand a) const;

 private:
  Demand intern(std::vector<DemandLiteral> literals);
  Demand node_demand(DemandNode node);

  std::deque<DemandNode> nodes_;  // node() stays where it is
  std::map<std::vector<DemandLiteral>, int32_t> ids_;
  std::vector<const std::vector<DemandLiteral>*> literals_;
  std::unordered_map<const OrderedJson*, Demand> schemas_;
  std::unordered_map<const OrderedJson*, Demand> constants_;
  std::map<std::string, Demand> small_constants_;  // by their texts
  std::map<std::vector<Demand>, Demand> choices_;
};

}  // namespace tgi::guide
