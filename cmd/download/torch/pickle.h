// Reads a pickle without running it: the few operations that a table of tensors needs (protocols 2
// to 5) build a tree of plain values; every other operation, and every name of a Python function or
// class that is not on the caller's list, is refused by name. A call is kept as what was to be
// called with what, and nothing is ever called.
//
// Operations: https://github.com/python/cpython/blob/main/Lib/pickletools.py
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tgi::download {

struct PickleLimits {
  size_t max_bytes = size_t{64} << 20;
  size_t max_values = size_t{4} << 20;  // a model of 10,000 tensors has some 300,000
  size_t max_stack = size_t{1} << 20;
};

using PickleRef = uint32_t;  // a value of a Pickle; values may contain themselves

struct PickleValue {
  enum class Kind : uint8_t {
    kNone,
    kBool,        // integer: 0 or 1
    kInteger,     // integer
    kReal,        // real
    kString,      // text
    kTuple,       // items
    kList,        // items
    kDict,        // items: key, value, key, value, ...
    kGlobal,      // text: "module.name"
    kPersistent,  // items: what the pickle leaves to the reader to find; one
    kCall,        // items: the global, the tuple of its arguments
  };

  Kind kind = Kind::kNone;
  int64_t integer = 0;
  double real = 0;
  std::string text{};
  std::vector<PickleRef> items{};
};

class Pickle {
 public:
  const PickleValue& operator[](PickleRef ref) const { return values_[ref]; }
  const PickleValue& root() const { return values_[root_]; }
  size_t size() const { return values_.size(); }   // the values are 0, 1, ...
  size_t num_bytes() const { return num_bytes_; }  // that it took of those that were given

 private:
  friend class PickleMachine;
  std::vector<PickleValue> values_;
  PickleRef root_ = 0;
  size_t num_bytes_ = 0;
};

// "collections.OrderedDict" becomes a dict whether it is on the list or not; state that is set on
// it is passed over (torch keeps versions of modules there). Throws kInvalidArgument beginning with
// `where`: malformed, beyond the limits, or with names that are not `allowed`; kUnsupported for
// operations that tensors don't need.
Pickle read_pickle(std::span<const std::byte> bytes,
                   std::string_view where,
                   std::span<const std::string_view> allowed,
                   const PickleLimits& limits = {});

// The value of a dict's text; null: it has none, or is no dict.
const PickleValue* find_item(const Pickle& pickle, const PickleValue& dict, std::string_view name);

// For messages: of a text that others chose, what can be printed, and not too much of it.
std::string printable(std::string_view text);

}  // namespace tgi::download
