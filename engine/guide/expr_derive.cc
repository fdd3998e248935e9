// Derivatives of expressions by bytes, and which bytes have the same.
#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "engine/guide/expr_pool.h"

namespace tgi::guide {
namespace {

// Where in the JSON spelling of a character an expression of kind kEscaped is: its `min`. The value
// of the hexadecimal digits so far stands above the lowest eight bits.
enum Phase : int32_t {
  kPlain = 0,
  kAfterBackslash = 1,
  kHexDigits = 2,  // 2 to 5: so many plus two digits of \uXXXX were seen
};

int32_t hex_digit(uint8_t byte) {
  if (byte >= '0' && byte <= '9') return byte - '0';
  if (byte >= 'a' && byte <= 'f') return byte - 'a' + 10;
  if (byte >= 'A' && byte <= 'F') return byte - 'A' + 10;
  return -1;
}

// The bytes that are still to come in this spelling, at least.
int32_t rest_of_escape(int32_t phase) {
  constexpr int32_t kRest[] = {0, 1, 4, 3, 2, 1};
  return kRest[phase & 0xFF];
}

bool has_to_be_escaped(int32_t character) {
  return character < 0x20 || character == '"' || character == '\\';
}

// Whether \u00XX may go on with `value`, which so many of its digits come to.
bool may_be_escaped(int32_t value, int32_t num_digits) {
  if (num_digits < 3) return value == 0;
  if (num_digits == 3) return value < 2 || value == '"' >> 4 || value == '\\' >> 4;
  return has_to_be_escaped(value);
}

// What an escape of one letter stands for; only of characters that have to be escaped.
int32_t simple_escape(uint8_t byte) {
  constexpr std::string_view kFrom = "\"\\bfnrt";
  constexpr std::string_view kTo = "\"\\\b\f\n\r\t";
  const size_t at = kFrom.find(static_cast<char>(byte));
  return at == std::string_view::npos ? -1 : static_cast<uint8_t>(kTo[at]);
}

}  // namespace

// Every byte that means something in an escape sequence is a class of its own.
void ExprPool::know_escapes() {
  if (knows_escapes_) return;
  knows_escapes_ = true;
  ByteSet control;
  for (size_t byte = 0; byte < 0x20; ++byte) control.set(byte);
  intern_set(control);
  for (const char c : std::string_view("\"\\bfnrtu0123456789abcdefABCDEF"))
    intern_set(ByteSet{}.set(static_cast<uint8_t>(c)));
  // ... and so is every byte that is written as one.
  for (const char c : std::string_view("\b\f\n\r\t"))
    intern_set(ByteSet{}.set(static_cast<uint8_t>(c)));
}

int32_t ExprPool::escaped(int32_t a, int32_t phase) {
  if (a == kNothing) return kNothing;
  if (phase == kPlain && a == kEmpty) return kEmpty;
  know_escapes();
  const ExprNode& inner = node(a);
  // One byte of UTF-8 takes one byte at least, and an escape sequence stands for one.
  const int32_t rest = phase == kPlain ? inner.min_length
                                       : rest_of_escape(phase) + std::max(0, inner.min_length - 1);
  return intern({.kind = ExprKind::kEscaped,
                 .nullable = phase == kPlain && inner.nullable,
                 .may_be_dead = phase != kPlain || inner.may_be_dead,
                 .exact_length = phase == kPlain && inner.nullable,
                 .is_text = phase == kPlain && inner.is_text,
                 .a = a,
                 .min = phase,
                 .min_length = rest,
                 .depth = inner.depth + 1},
                {});
}

int32_t ExprPool::derive_escaped(const ExprNode& of, uint8_t byte) {
  const ExprNode node = of;  // the pool grows
  const int32_t phase = node.min & 0xFF;
  if (phase == kPlain) {
    if (byte == '\\') return escaped(node.a, kAfterBackslash);
    if (has_to_be_escaped(byte)) return kNothing;
    return escaped(derive(node.a, byte), kPlain);
  }
  if (phase == kAfterBackslash) {
    if (byte == 'u') return escaped(node.a, kHexDigits);
    const int32_t meant = simple_escape(byte);
    if (meant < 0) return kNothing;
    return escaped(derive(node.a, static_cast<uint8_t>(meant)), kPlain);
  }
  const int32_t digit = hex_digit(byte);
  if (digit < 0) return kNothing;
  const int32_t value = (node.min >> 8) << 4 | digit;
  const int32_t num_left = rest_of_escape(phase) - 1;
  if (!may_be_escaped(value, 4 - num_left)) return kNothing;
  if (num_left > 0) return escaped(node.a, (phase + 1) | value << 8);
  return escaped(derive(node.a, static_cast<uint8_t>(value)), kPlain);
}

int32_t ExprPool::derive_concat(int32_t id, uint8_t byte) {
  std::vector<int32_t> alternatives;
  while (node(id).kind == ExprKind::kConcat) {
    const int32_t head = node(id).a;
    const int32_t tail = node(id).b;
    const int32_t derived = derive(head, byte);
    if (derived != kNothing) alternatives.push_back(concat(derived, tail));
    if (!nullable(head)) return either(alternatives);
    id = tail;
  }
  alternatives.push_back(derive(id, byte));
  return either(alternatives);
}

int32_t ExprPool::derive(int32_t id, uint8_t byte) {
  count_steps(1);
  const ExprNode& node = this->node(id);
  switch (node.kind) {
    case ExprKind::kBytes:
      return set(node.a)[byte] ? kEmpty : kNothing;
    case ExprKind::kSwitch: {
      const std::span<const int32_t> branches = parts(node);
      for (size_t i = 0; i < branches.size(); i += 2) {
        if (set(branches[i])[byte]) return branches[i + 1];
      }
      return kNothing;
    }
    case ExprKind::kConcat:
      return derive_concat(id, byte);
    case ExprKind::kEither:
    case ExprKind::kBoth: {
      const bool is_either = node.kind == ExprKind::kEither;
      const std::vector<int32_t> old(parts(node).begin(), parts(node).end());
      std::vector<int32_t> derived;
      for (const int32_t part : old) {
        const int32_t next = derive(part, byte);
        if (next == kNothing && !is_either) return kNothing;
        if (next != kNothing) derived.push_back(next);
      }
      return is_either ? either(derived) : both(derived);
    }
    case ExprKind::kComplement:
      return complement(derive(node.a, byte));
    case ExprKind::kRepeat: {
      const int32_t body = node.a;
      const int32_t min = std::max(0, node.min - 1);
      const int32_t max = node.max == kUnbounded ? kUnbounded : node.max - 1;
      const int32_t derived = derive(body, byte);
      return derived == kNothing ? kNothing : concat(derived, repeat(body, min, max));
    }
    case ExprKind::kEscaped:
      return derive_escaped(node, byte);
    case ExprKind::kNothing:
    case ExprKind::kEmpty:
    case ExprKind::kCall:
    case ExprKind::kToken:
    case ExprKind::kItemEnd:
      break;
  }
  return kNothing;
}

void ClassGroups::tell_apart(const ByteSet& inside) {
  std::array<int16_t, 512> number_of;  // by group and side; -1: no class of it is there yet
  number_of.fill(-1);
  int16_t next = 0;
  for (size_t c = 0; c < group_.size(); ++c) {
    int16_t& number = number_of[size_t{group_[c]} * 2 + static_cast<size_t>(inside[c])];
    if (number < 0) number = next++;
    group_[c] = static_cast<uint8_t>(number);
  }
  num_groups_ = static_cast<size_t>(next);
}

void ClassGroups::tell_all_apart() {
  for (size_t c = 0; c < group_.size(); ++c) group_[c] = static_cast<uint8_t>(c);
  num_groups_ = group_.size();
}

const ByteSet& ExprPool::classes_in(int32_t set) {
  const auto at = static_cast<size_t>(set);
  if (num_classes_known_ != num_classes()) {
    num_classes_known_ = num_classes();
    classes_in_.clear();
  }
  if (classes_in_.size() < sets_.size()) classes_in_.resize(sets_.size());
  ByteSet& inside = classes_in_[at];
  if (inside.none()) {
    for (int32_t c = 0; c < num_classes(); ++c)
      inside[static_cast<size_t>(c)] = sets_[at][representative(c)];
  }
  return inside;
}

// As derive() goes: what it looks at in the byte is told apart.
void ExprPool::tell_apart(int32_t id, ClassGroups& groups) {
  for (; this->node(id).kind == ExprKind::kConcat; id = this->node(id).b) {
    tell_apart(this->node(id).a, groups);
    if (!nullable(this->node(id).a)) return;
  }
  if (groups.is_finest()) return;
  const ExprNode& node = this->node(id);
  const auto by = [&](const auto& is_in) {
    ByteSet inside;
    for (int32_t c = 0; c < num_classes(); ++c)
      inside[static_cast<size_t>(c)] = is_in(representative(c));
    groups.tell_apart(inside);
  };
  switch (node.kind) {
    case ExprKind::kBytes:
      groups.tell_apart(classes_in(node.a));
      return;
    case ExprKind::kSwitch: {
      const std::span<const int32_t> branches = parts(node);
      for (size_t i = 0; i < branches.size() && !groups.is_finest(); i += 2)
        groups.tell_apart(classes_in(branches[i]));
      return;
    }
    case ExprKind::kEither:
    case ExprKind::kBoth:
      for (const int32_t part : parts(node)) tell_apart(part, groups);
      return;
    case ExprKind::kComplement:
    case ExprKind::kRepeat:
      tell_apart(node.a, groups);
      return;
    case ExprKind::kEscaped:
      if ((node.min & 0xFF) != kPlain) {
        groups.tell_all_apart();
        return;
      }
      by([](uint8_t byte) { return byte == '\\'; });
      by([](uint8_t byte) { return byte == '"'; });
      by([](uint8_t byte) { return byte < 0x20; });
      tell_apart(node.a, groups);
      return;
    case ExprKind::kNothing:
    case ExprKind::kEmpty:
    case ExprKind::kConcat:
    case ExprKind::kCall:
    case ExprKind::kToken:
    case ExprKind::kItemEnd:
      return;
  }
}

}  // namespace tgi::guide
