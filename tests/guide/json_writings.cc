#include "tests/guide/json_writings.h"

#include <algorithm>
#include <numeric>

#include "engine/guide/json/decimal.h"
#include "engine/guide/json/json_text_regex.h"

namespace tgi::guide {
namespace {

constexpr size_t kMaxWritings = 5000;

// Every text of the first with every one of the second.
std::vector<std::string> joined(const std::vector<std::string>& a,
                                const std::vector<std::string>& b) {
  std::vector<std::string> result;
  for (const std::string& first : a) {
    for (const std::string& second : b) {
      if (result.size() < kMaxWritings) result.push_back(first + second);
    }
  }
  return result;
}

std::vector<std::string> writings_of_object(const nlohmann::ordered_json& value) {
  constexpr size_t kMaxPermuted = 5;
  std::vector<std::vector<std::string>> members;
  for (auto member = value.begin(); member != value.end(); ++member) {
    members.push_back(joined({quoted_json(member.key()) + ":"}, json_writings(member.value())));
  }
  std::vector<size_t> order(members.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::vector<std::string> result;
  do {
    std::vector<std::string> texts = {"{"};
    for (size_t i = 0; i < order.size(); ++i) {
      if (i > 0) texts = joined(texts, {","});
      texts = joined(texts, members[order[i]]);
    }
    for (std::string& text : joined(texts, {"}"})) {
      if (result.size() < kMaxWritings) result.push_back(std::move(text));
    }
  } while (members.size() <= kMaxPermuted && std::next_permutation(order.begin(), order.end()));
  return result;
}

}  // namespace

std::vector<std::string> json_writings(const nlohmann::ordered_json& value) {
  if (value.is_number()) return {Decimal::of(value).text()};
  if (value.is_string()) return {quoted_json(value.get<std::string>())};
  if (value.is_object()) return writings_of_object(value);
  if (!value.is_array()) return {value.dump()};
  std::vector<std::string> texts = {"["};
  for (size_t i = 0; i < value.size(); ++i) {
    if (i > 0) texts = joined(texts, {","});
    texts = joined(texts, json_writings(value[i]));
  }
  return joined(texts, {"]"});
}

}  // namespace tgi::guide
