#include "engine/guide/lark_parameters.h"

#include <array>
#include <bit>
#include <string>
#include <string_view>
#include <utility>

#include "engine/guide/lark_literals.h"

namespace tgi::guide {
namespace {

constexpr int32_t kNumBits = 64;
constexpr int32_t kMaxConditionNesting = 50;

using Change = LarkChange::Kind;
using Condition = LarkCondition::Kind;

void skip_spaces(SourceText& source) {
  while (source.take(" ") || source.take("\t")) {
  }
}

void expect(SourceText& source, std::string_view mark) {
  skip_spaces(source);
  if (!source.take(mark)) source.refuse("expected \"" + std::string(mark) + "\"");
  skip_spaces(source);
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// In decimal, or in hexadecimal after 0x.
uint64_t take_number(SourceText& source) {
  const size_t begin = source.at;
  const bool is_hex = source.take("0x") || source.take("0X");
  const uint64_t base = is_hex ? 16 : 10;
  uint64_t value = 0;
  size_t num_digits = 0;
  for (;; ++source.at, ++num_digits) {
    const char c = source.peek();
    const char lower = static_cast<char>(c | 0x20);
    const bool is_letter = is_hex && lower >= 'a' && lower <= 'f';
    if (!is_digit(c) && !is_letter) break;
    const auto digit = static_cast<uint64_t>(is_letter ? lower - 'a' + 10 : c - '0');
    if (value > (UINT64_MAX - digit) / base)
      source.refuse(begin, "a number of more than 64 bits", Code::kInvalidArgument);
    value = value * base + digit;
  }
  if (num_digits == 0) source.refuse("expected a number");
  return value;
}

int32_t take_bit(SourceText& source, int32_t max) {
  const size_t begin = source.at;
  const uint64_t bit = take_number(source);
  if (bit > static_cast<uint64_t>(max)) {
    source.refuse(begin, "a bit's number is at most " + std::to_string(max),
                  Code::kInvalidArgument);
  }
  return static_cast<int32_t>(bit);
}

LarkBits take_bits(SourceText& source) {
  const size_t begin = source.at;
  if (source.take("_")) return {};
  if (!source.take("[")) source.refuse("expected _ or [first bit:end]");
  skip_spaces(source);
  LarkBits bits;
  bits.first = take_bit(source, kNumBits - 1);
  expect(source, ":");
  bits.end = take_bit(source, kNumBits);
  expect(source, "]");
  if (bits.end <= bits.first)
    source.refuse(begin, "bits that end before they begin", Code::kInvalidArgument);
  return bits;
}

LarkBits single_bit(int32_t bit) {
  return {bit, bit + 1};
}

template <typename T>
const T* row_named(std::string_view name, const auto& rows) {
  for (const auto& row : rows)
    if (row.first == name) return &row.second;
  return nullptr;
}

constexpr std::array<std::pair<std::string_view, Condition>, 6> kComparisons = {{
    {"eq", Condition::kEq},
    {"ne", Condition::kNe},
    {"lt", Condition::kLt},
    {"le", Condition::kLe},
    {"gt", Condition::kGt},
    {"ge", Condition::kGe},
}};

LarkCondition take_condition(SourceText& source, int32_t nesting);

LarkCondition take_comparison(SourceText& source, Condition kind, bool counts_bits) {
  LarkCondition condition{.kind = kind, .counts_bits = counts_bits};
  condition.bits = take_bits(source);
  expect(source, ",");
  condition.value = take_number(source);
  return condition;
}

// What stands in the parentheses of `name`, which is at `place`.
LarkCondition take_arguments(SourceText& source,
                             size_t place,
                             std::string_view name,
                             int32_t nesting) {
  if (const Condition* kind = row_named<Condition>(name, kComparisons))
    return take_comparison(source, *kind, false);
  constexpr std::string_view kCount = "bit_count_";
  if (name.starts_with(kCount)) {
    if (const Condition* kind = row_named<Condition>(name.substr(kCount.size()), kComparisons))
      return take_comparison(source, *kind, true);
  }
  if (name == "bit_clear" || name == "bit_set") {
    return {.kind = Condition::kEq,
            .bits = single_bit(take_bit(source, kNumBits - 1)),
            .value = name == "bit_set" ? 1U : 0U};
  }
  if (name == "is_zeros") return {.kind = Condition::kEq, .bits = take_bits(source)};
  if (name == "is_ones") {
    const LarkBits bits = take_bits(source);
    return {.kind = Condition::kEq, .bits = bits, .value = bits.of(bits.mask())};
  }
  if (name == "not")
    return {.kind = Condition::kNot, .parts = {take_condition(source, nesting + 1)}};
  if (name == "and" || name == "or") {
    LarkCondition condition{.kind = name == "and" ? Condition::kAnd : Condition::kOr};
    condition.parts.push_back(take_condition(source, nesting + 1));
    expect(source, ",");
    condition.parts.push_back(take_condition(source, nesting + 1));
    return condition;
  }
  source.refuse(place, "a condition that isn't known", Code::kInvalidArgument);
}

LarkCondition take_condition(SourceText& source, int32_t nesting) {
  const size_t begin = source.at;
  if (nesting > kMaxConditionNesting) {
    source.refuse(
        begin, "more than " + std::to_string(kMaxConditionNesting) + " conditions in one another",
        Code::kInvalidArgument);
  }
  const std::string name = take_lark_word(source, "a condition");
  if (name == "true") {
    if (source.take("(")) expect(source, ")");
    return {};
  }
  expect(source, "(");
  LarkCondition condition = take_arguments(source, begin, name, nesting);
  skip_spaces(source);
  if (!source.take(")")) source.refuse("expected \")\"");
  return condition;
}

}  // namespace

uint64_t LarkBits::mask() const {
  const uint64_t below_end = end == kNumBits ? ~uint64_t{0} : (uint64_t{1} << end) - 1;
  return below_end & ~((uint64_t{1} << first) - 1);
}

uint64_t LarkChange::of(uint64_t parameter) const {
  switch (kind) {
    case Change::kValue:
      return value;
    case Change::kSame:
      return parameter;
    case Change::kAnd:
      return parameter & value;
    case Change::kOr:
      return parameter | value;
    case Change::kIncrement:
      return bits.of(~parameter) == 0 ? parameter : parameter + (uint64_t{1} << bits.first);
    case Change::kDecrement:
      return bits.of(parameter) == 0 ? parameter : parameter - (uint64_t{1} << bits.first);
  }
  return parameter;
}

bool LarkCondition::holds(uint64_t parameter) const {
  uint64_t number = bits.of(parameter);
  if (counts_bits) number = static_cast<uint64_t>(std::popcount(number));
  switch (kind) {
    case Condition::kTrue:
      return true;
    case Condition::kEq:
      return number == value;
    case Condition::kNe:
      return number != value;
    case Condition::kLt:
      return number < value;
    case Condition::kLe:
      return number <= value;
    case Condition::kGt:
      return number > value;
    case Condition::kGe:
      return number >= value;
    case Condition::kAnd:
      return parts[0].holds(parameter) && parts[1].holds(parameter);
    case Condition::kOr:
      return parts[0].holds(parameter) || parts[1].holds(parameter);
    case Condition::kNot:
      return !parts[0].holds(parameter);
  }
  return false;
}

LarkChange take_lark_change(SourceText& source) {
  if (is_digit(source.peek())) return {.kind = Change::kValue, .value = take_number(source)};
  const size_t begin = source.at;
  const std::string name = take_lark_word(source, "_, a number, or a change of the parameter");
  if (name == "_") return {};
  expect(source, "(");
  LarkChange change;
  if (name == "set_bit") {
    change = {.kind = Change::kOr, .value = single_bit(take_bit(source, kNumBits - 1)).mask()};
  } else if (name == "clear_bit") {
    change = {.kind = Change::kAnd, .value = ~single_bit(take_bit(source, kNumBits - 1)).mask()};
  } else if (name == "bit_and") {
    change = {.kind = Change::kAnd, .value = take_number(source)};
  } else if (name == "bit_or") {
    change = {.kind = Change::kOr, .value = take_number(source)};
  } else if (name == "incr") {
    change = {.kind = Change::kIncrement, .bits = take_bits(source)};
  } else if (name == "decr") {
    change = {.kind = Change::kDecrement, .bits = take_bits(source)};
  } else {
    source.refuse(begin, "a change of the parameter that isn't known", Code::kInvalidArgument);
  }
  skip_spaces(source);
  if (!source.take(")")) source.refuse("expected \")\"");
  return change;
}

LarkCondition take_lark_condition(SourceText& source) {
  return take_condition(source, 0);
}

}  // namespace tgi::guide
