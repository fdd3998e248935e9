#include "engine/guide/json/demands.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tgi::guide {

Demands::Demands() {
  intern({});  // kAnything
  // Nothing is a choice of nothing.
  nodes_.push_back({DemandNode::Kind::kChoice, nullptr, nullptr, {}});
  intern({{0, false}});  // kNothing
}

Demand Demands::intern(std::vector<DemandLiteral> literals) {
  constexpr size_t kMaxDemands = 200'000;
  if (literals_.size() >= kMaxDemands) {
    reject_combinations("#", "the parts of the schema have more than " +
                                 std::to_string(kMaxDemands) + " combinations");
  }
  const auto [place, is_new] =
      ids_.emplace(std::move(literals), static_cast<int32_t>(literals_.size()));
  if (is_new) literals_.push_back(&place->first);
  return {place->second};
}

Demand Demands::node_demand(DemandNode node) {
  nodes_.push_back(std::move(node));
  return intern({{static_cast<int32_t>(nodes_.size()) - 1, false}});
}

Demand Demands::schema(const SchemaPlace& place) {
  const OrderedJson& json = *place.json;
  if (json.is_boolean()) return json.get<bool>() ? kAnything : kNothing;
  if (json.is_object() && json.empty()) return kAnything;
  const auto [known, is_new] = schemas_.emplace(&json, Demand{});
  if (is_new) known->second = node_demand({DemandNode::Kind::kSchema, &place, nullptr, {}});
  return known->second;
}

Demand Demands::constant(const OrderedJson& value) {
  if (!value.is_structured()) {
    const auto [known, is_new] = small_constants_.emplace(value.dump(), Demand{});
    if (is_new) known->second = node_demand({DemandNode::Kind::kConstant, nullptr, &value, {}});
    return known->second;
  }
  const auto [known, is_new] = constants_.emplace(&value, Demand{});
  if (is_new) known->second = node_demand({DemandNode::Kind::kConstant, nullptr, &value, {}});
  return known->second;
}

Demand Demands::any_of(std::vector<Demand> choices) {
  std::sort(choices.begin(), choices.end());
  choices.erase(std::unique(choices.begin(), choices.end()), choices.end());
  if (!choices.empty() && choices.front() == kAnything) return kAnything;
  choices.erase(std::remove(choices.begin(), choices.end(), kNothing), choices.end());
  if (choices.empty()) return kNothing;
  if (choices.size() == 1) return choices.front();
  const auto [known, is_new] = choices_.emplace(std::move(choices), Demand{});
  if (is_new) {
    known->second = node_demand({DemandNode::Kind::kChoice, nullptr, nullptr, known->first});
  }
  return known->second;
}

Demand Demands::both(Demand a, Demand b) {
  if (a == b || b == kAnything) return a;
  if (a == kAnything) return b;
  if (a == kNothing || b == kNothing) return kNothing;
  std::vector<DemandLiteral> all;
  std::set_union(literals(a).begin(), literals(a).end(), literals(b).begin(), literals(b).end(),
                 std::back_inserter(all));
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    if (all[i].node == all[i + 1].node) return kNothing;  // a schema and its negation
  }
  return intern(std::move(all));
}

Demand Demands::negated(Demand a) {
  if (a == kAnything) return kNothing;
  if (a == kNothing) return kAnything;
  std::vector<Demand> choices;
  const std::vector<DemandLiteral> parts = literals(a);
  for (const DemandLiteral& part : parts) choices.push_back(intern({{part.node, !part.negated}}));
  return any_of(std::move(choices));
}

std::string Demands::path(Demand a) const {
  for (const DemandLiteral& literal : literals(a)) {
    const DemandNode& part = node(literal);
    if (part.place != nullptr) return part.place->path;
    for (const Demand choice : part.choices) {
      for (const DemandLiteral& inner : literals(choice)) {
        if (node(inner).place != nullptr) return node(inner).place->path;
      }
    }
  }
  return "#";
}

}  // namespace tgi::guide
