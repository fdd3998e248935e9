#include "engine/guide/regex.h"

#include <string>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "engine/guide/code_points.h"
#include "engine/guide/dfa.h"
#include "engine/guide/different_items.h"
#include "engine/guide/expr_pool.h"

namespace tgi::guide {
namespace {

std::vector<int32_t> ids_of(std::span<const Regex> parts) {
  std::vector<int32_t> ids;
  ids.reserve(parts.size());
  for (const Regex part : parts) ids.push_back(part.id);
  return ids;
}

}  // namespace

struct RegexPool::Impl {
  Impl() : pool(RegexLimits{}) {
    any_character = utf8_of(pool, normalize_code_points({{{0, 0x10FFFF}}}));
    any_text = pool.repeat(any_character, 0, kUnbounded);
    pool.set_any_text(any_text);
  }

  ExprPool pool;
  int32_t any_character = 0;
  int32_t any_text = 0;
};

// What all pools begin with is made once.
RegexPool::RegexPool(const RegexLimits& limits) {
  static const Impl beginning;
  impl_ = std::make_unique<Impl>(beginning);
  impl_->pool.set_limits(limits);
}
RegexPool::~RegexPool() = default;

const ExprPool& RegexPool::expressions() const {
  return impl_->pool;
}

Regex RegexPool::nothing() {
  return {ExprPool::kNothing};
}

Regex RegexPool::empty_text() {
  return {ExprPool::kEmpty};
}

Regex RegexPool::bytes(const ByteSet& set) {
  return {impl_->pool.bytes(set)};
}

Regex RegexPool::literal(std::string_view text) {
  ExprPool& pool = impl_->pool;
  int32_t result = ExprPool::kEmpty;
  for (size_t end = text.size(); end > 0; --end) {
    const auto byte = static_cast<uint8_t>(text[end - 1]);
    result = pool.concat(pool.bytes(ByteSet{}.set(byte)), result);
  }
  return {result != ExprPool::kEmpty && is_valid_utf8(text) ? pool.mark_text(result) : result};
}

Regex RegexPool::code_points(std::span<const CodePointRange> ranges) {
  return {utf8_of(impl_->pool, normalize_code_points(ranges))};
}

Regex RegexPool::any_character() {
  return {impl_->any_character};
}

Regex RegexPool::any_text() {
  return {impl_->any_text};
}

Regex RegexPool::concat(std::span<const Regex> parts) {
  int32_t result = ExprPool::kEmpty;
  for (size_t end = parts.size(); end > 0; --end)
    result = impl_->pool.concat(parts[end - 1].id, result);
  return {result};
}

Regex RegexPool::concat(std::initializer_list<Regex> parts) {
  return concat(std::span(parts.begin(), parts.size()));
}

Regex RegexPool::either(std::span<const Regex> parts) {
  return {impl_->pool.either(ids_of(parts))};
}

Regex RegexPool::either(std::initializer_list<Regex> parts) {
  return either(std::span(parts.begin(), parts.size()));
}

Regex RegexPool::both(Regex a, Regex b) {
  return {impl_->pool.both(std::array{a.id, b.id})};
}

Regex RegexPool::complement(Regex a) {
  return {impl_->pool.complement(a.id)};
}

Regex RegexPool::repeat(Regex a, int32_t min, int32_t max) {
  TGI_CHECK(min >= 0 && (max == kUnbounded || max >= min));
  return {impl_->pool.repeat(a.id, min, max)};
}

Regex RegexPool::json_escaped(Regex a) {
  return {impl_->pool.escaped(a.id, 0)};
}

bool RegexPool::accepts_empty_text(Regex a) const {
  return impl_->pool.nullable(a.id);
}

ByteSet RegexPool::possible_bytes(Regex a) {
  return impl_->pool.possible_bytes(a.id);
}

bool RegexPool::is_empty(Regex a) {
  const ExprPool::Alive alive = impl_->pool.alive(a.id);
  if (alive == ExprPool::Alive::kTooHard) {
    throw Error(Code::kInvalidArgument,
                "whether any text satisfies the expression takes more than " +
                    std::to_string(impl_->pool.max_dfa_states()) +
                    " states to find out; make repetitions and intersections smaller");
  }
  return alive == ExprPool::Alive::kNo;
}

void RegexPool::count_steps(size_t steps) {
  impl_->pool.count_steps(steps);
}

bool RegexPool::matches(Regex a, std::string_view text) {
  for (const char byte : text) a.id = impl_->pool.derive(a.id, static_cast<uint8_t>(byte));
  return impl_->pool.nullable(a.id);
}

std::vector<int32_t> RegexPool::lengths_of_different_values(Regex a, int32_t count) {
  return guide::lengths_of_different_values(impl_->pool, a.id, count);
}

Dfa RegexPool::dfa(Regex a) {
  return minimal_dfa(impl_->pool, a.id);
}

}  // namespace tgi::guide
