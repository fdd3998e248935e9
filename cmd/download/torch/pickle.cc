#include "cmd/download/torch/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "base/error.h"

namespace tgi::download {

using Kind = PickleValue::Kind;

namespace {

constexpr std::string_view kOrderedDict = "collections.OrderedDict";

}  // namespace

std::string printable(std::string_view text) {
  constexpr size_t kMaxShown = 120;
  std::string out;
  for (const char c : text.substr(0, kMaxShown)) out += c >= ' ' && c < 0x7f ? c : '?';
  return text.size() > kMaxShown ? out + "..." : out;
}

class PickleMachine {
 public:
  PickleMachine(std::span<const std::byte> bytes,
                std::string_view where,
                std::span<const std::string_view> allowed,
                const PickleLimits& limits)
      : bytes_(bytes), where_(where), allowed_(allowed), limits_(limits) {}

  Pickle run() {
    if (bytes_.size() > limits_.max_bytes) {
      fail(fmt::format("{} bytes long, the limit is {}", bytes_.size(), limits_.max_bytes));
    }
    for (;;) {
      const auto code = take<uint8_t>();
      if (code == '.') break;
      execute(code);
    }
    out_.root_ = pop();
    out_.num_bytes_ = at_;
    return std::move(out_);
  }

 private:
  struct Operation {
    char code;
    void (*run)(PickleMachine& machine);
  };
  static const std::array<Operation, 43> kOperations;

  void execute(uint8_t code) {
    for (const Operation& operation : kOperations) {
      if (static_cast<uint8_t>(operation.code) == code) return operation.run(*this);
    }
    throw Error(Code::kUnsupported,
                fmt::format("{}: its pickle has the operation 0x{:02x} at byte {}, which tensors "
                            "don't need; not opened",
                            where_, code, at_ - 1));
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(Code::kInvalidArgument, fmt::format("{}: a bad pickle: {}", where_, what));
  }

  std::string_view take_text(uint64_t size) {
    if (size > bytes_.size() - at_) fail(fmt::format("it ends too early, at byte {}", at_));
    const auto* begin = reinterpret_cast<const char*>(bytes_.data() + at_);
    at_ += static_cast<size_t>(size);
    return {begin, static_cast<size_t>(size)};
  }

  template <typename T>
  T take() {
    const std::string_view text = take_text(sizeof(T));
    uint64_t out = 0;
    for (size_t i = 0; i < sizeof(T); ++i) {
      out |= static_cast<uint64_t>(static_cast<uint8_t>(text[i])) << (8 * i);
    }
    return static_cast<T>(out);
  }

  std::string_view take_line() {
    const size_t begin = at_;
    while (take<uint8_t>() != '\n') {
    }
    return {reinterpret_cast<const char*>(bytes_.data() + begin), at_ - begin - 1};
  }

  PickleRef make(PickleValue value) {
    if (out_.values_.size() >= limits_.max_values) {
      fail(fmt::format("more than {} values", limits_.max_values));
    }
    out_.values_.push_back(std::move(value));
    return static_cast<PickleRef>(out_.values_.size() - 1);
  }

  void push(PickleRef ref) {
    if (stack_.size() >= limits_.max_stack) {
      fail(fmt::format("more than {} values on its stack", limits_.max_stack));
    }
    stack_.push_back(ref);
  }
  void push_new(PickleValue value) { push(make(std::move(value))); }

  // A mark closes what lies below it off.
  size_t bottom() const { return marks_.empty() ? 0 : marks_.back(); }

  PickleRef pop() {
    const PickleRef ref = top();
    stack_.pop_back();
    return ref;
  }
  PickleRef top() const {
    if (stack_.size() <= bottom()) fail(fmt::format("nothing on its stack at byte {}", at_));
    return stack_.back();
  }

  std::vector<PickleRef> pop_marked() {
    if (marks_.empty()) fail(fmt::format("no mark on its stack at byte {}", at_));
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<PickleRef> out(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return out;
  }

  PickleValue& value(PickleRef ref) { return out_.values_[ref]; }
  PickleValue& require(PickleRef ref, Kind kind, std::string_view what) {
    if (value(ref).kind != kind) fail(fmt::format("expected {} before byte {}", what, at_));
    return value(ref);
  }

  void mark() {
    if (marks_.size() >= limits_.max_stack) fail("too many marks");
    marks_.push_back(stack_.size());
  }

  void push_text(std::string_view text) {
    push_new({.kind = Kind::kString, .text = std::string(text)});
  }
  void push_integer(int64_t integer) { push_new({.kind = Kind::kInteger, .integer = integer}); }

  void push_tuple(size_t size) {
    std::vector<PickleRef> items(size);
    for (size_t i = size; i-- > 0;) items[i] = pop();
    push_new({.kind = Kind::kTuple, .items = std::move(items)});
  }

  void add_to(Kind kind, std::vector<PickleRef> items) {
    const bool is_dict = kind == Kind::kDict;
    if (is_dict && items.size() % 2 != 0) fail("a key without a value");
    PickleValue& target = require(top(), kind, is_dict ? "a dict" : "a list");
    target.items.insert(target.items.end(), items.begin(), items.end());
  }

  std::vector<PickleRef> pop_two() {
    const PickleRef second = pop();
    return {pop(), second};
  }

  // At its first mention, long before anything could be done with it.
  void push_global(std::string_view module, std::string_view name) {
    std::string text = fmt::format("{}.{}", module, name);
    if (text != kOrderedDict && std::ranges::find(allowed_, text) == allowed_.end()) {
      const bool is_data = text.starts_with("torch.") || text.starts_with("numpy.");
      throw Error(is_data ? Code::kUnsupported : Code::kInvalidArgument,
                  fmt::format("{}: contains {}: {}; not opened", where_, printable(text),
                              is_data ? "more than the plain tensors that are read"
                                      : "a checkpoint with code in it"));
    }
    push_new({.kind = Kind::kGlobal, .text = std::move(text)});
  }

  void push_stack_global() {
    const std::vector<PickleRef> names = pop_two();
    const std::string module = require(names[0], Kind::kString, "a module's name").text;
    const std::string name = require(names[1], Kind::kString, "a name").text;
    push_global(module, name);
  }

  // A dict from nothing, or from a list of pairs.
  PickleValue ordered_dict(PickleRef arguments) {
    PickleValue out{.kind = Kind::kDict};
    const std::vector<PickleRef>& given = value(arguments).items;
    if (given.empty()) return out;
    if (given.size() != 1) fail("an OrderedDict of more than one thing");
    const std::vector<PickleRef>& pairs = require(given[0], Kind::kList, "a list of pairs").items;
    // One list may serve any number of times, so that a short pickle asks for much.
    num_copied_ += pairs.size();
    if (num_copied_ > limits_.max_values) fail("too many pairs in its dicts");
    for (const PickleRef pair : pairs) {
      const Kind kind = value(pair).kind;
      if ((kind != Kind::kTuple && kind != Kind::kList) || value(pair).items.size() != 2) {
        fail("an OrderedDict of something other than pairs");
      }
      out.items.insert(out.items.end(), value(pair).items.begin(), value(pair).items.end());
    }
    return out;
  }

  void reduce() {
    const std::vector<PickleRef> call = pop_two();
    require(call[1], Kind::kTuple, "a tuple of arguments");
    if (require(call[0], Kind::kGlobal, "a function").text == kOrderedDict) {
      push_new(ordered_dict(call[1]));
    } else {
      push_new({.kind = Kind::kCall, .items = call});
    }
  }

  void build() {
    pop();
    require(top(), Kind::kDict, "an OrderedDict, as nothing else may have attributes,");
  }

  void put(uint64_t index) {
    if (index >= limits_.max_values) {
      fail(fmt::format("memo {} is beyond the limit of {}", index, limits_.max_values));
    }
    if (index >= memo_.size()) memo_.resize(static_cast<size_t>(index) + 1, kNothing);
    memo_[static_cast<size_t>(index)] = top();
    num_memos_ = std::max(num_memos_, index + 1);
  }

  void get(uint64_t index) {
    if (index >= memo_.size() || memo_[static_cast<size_t>(index)] == kNothing) {
      fail(fmt::format("memo {} is used before it is set", index));
    }
    push(memo_[static_cast<size_t>(index)]);
  }

  void push_long() {
    const std::string_view text = take_text(take<uint8_t>());
    if (text.size() > 8) fail("a number of more than 64 bits");
    const bool is_negative = !text.empty() && (static_cast<uint8_t>(text.back()) & 0x80) != 0;
    uint64_t out = is_negative ? ~uint64_t{0} : 0;
    for (size_t i = 0; i < text.size(); ++i) {
      out &= ~(uint64_t{0xff} << (8 * i));
      out |= static_cast<uint64_t>(static_cast<uint8_t>(text[i])) << (8 * i);
    }
    push_integer(static_cast<int64_t>(out));
  }

  void push_real() {  // big-endian, unlike everything else
    const std::string_view text = take_text(8);
    uint64_t bits = 0;
    for (const char c : text) bits = bits << 8 | static_cast<uint8_t>(c);
    push_new({.kind = Kind::kReal, .real = std::bit_cast<double>(bits)});
  }

  void check_protocol() {
    const auto protocol = take<uint8_t>();
    if (protocol < 2 || protocol > 5) fail(fmt::format("protocol {} is not known", protocol));
  }

  static constexpr PickleRef kNothing = UINT32_MAX;

  const std::span<const std::byte> bytes_;
  const std::string_view where_;
  const std::span<const std::string_view> allowed_;
  const PickleLimits limits_;
  size_t at_ = 0;
  std::vector<PickleRef> stack_;
  std::vector<size_t> marks_;    // sizes of the stack
  std::vector<PickleRef> memo_;  // by index
  uint64_t num_memos_ = 0;       // the next index of MEMOIZE, which counts
  size_t num_copied_ = 0;        // pairs, from lists into dicts
  Pickle out_;
};

// Those of protocols 2 to 5 that tables of tensors are made of.
constexpr std::array<PickleMachine::Operation, 43> PickleMachine::kOperations = {{
    {'\x80', [](PickleMachine& m) { m.check_protocol(); }},
    {'\x95', [](PickleMachine& m) { m.take<uint64_t>(); }},  // the length of a frame
    {'(', [](PickleMachine& m) { m.mark(); }},
    {'0', [](PickleMachine& m) { m.pop(); }},
    {'1', [](PickleMachine& m) { m.pop_marked(); }},
    {'2', [](PickleMachine& m) { m.push(m.top()); }},
    {'N', [](PickleMachine& m) { m.push_new({}); }},
    {'\x88', [](PickleMachine& m) { m.push_new({.kind = Kind::kBool, .integer = 1}); }},
    {'\x89', [](PickleMachine& m) { m.push_new({.kind = Kind::kBool, .integer = 0}); }},
    {'J', [](PickleMachine& m) { m.push_integer(m.take<int32_t>()); }},
    {'K', [](PickleMachine& m) { m.push_integer(m.take<uint8_t>()); }},
    {'M', [](PickleMachine& m) { m.push_integer(m.take<uint16_t>()); }},
    {'\x8a', [](PickleMachine& m) { m.push_long(); }},
    {'G', [](PickleMachine& m) { m.push_real(); }},
    {'X', [](PickleMachine& m) { m.push_text(m.take_text(m.take<uint32_t>())); }},
    {'\x8c', [](PickleMachine& m) { m.push_text(m.take_text(m.take<uint8_t>())); }},
    {'\x8d', [](PickleMachine& m) { m.push_text(m.take_text(m.take<uint64_t>())); }},
    {'T', [](PickleMachine& m) { m.push_text(m.take_text(m.take<uint32_t>())); }},
    {'U', [](PickleMachine& m) { m.push_text(m.take_text(m.take<uint8_t>())); }},
    {'}', [](PickleMachine& m) { m.push_new({.kind = Kind::kDict}); }},
    {'s', [](PickleMachine& m) { m.add_to(Kind::kDict, m.pop_two()); }},
    {'u', [](PickleMachine& m) { m.add_to(Kind::kDict, m.pop_marked()); }},
    {']', [](PickleMachine& m) { m.push_new({.kind = Kind::kList}); }},
    {'a', [](PickleMachine& m) { m.add_to(Kind::kList, {m.pop()}); }},
    {'e', [](PickleMachine& m) { m.add_to(Kind::kList, m.pop_marked()); }},
    {'l', [](PickleMachine& m) { m.push_new({.kind = Kind::kList, .items = m.pop_marked()}); }},
    {')', [](PickleMachine& m) { m.push_tuple(0); }},
    {'\x85', [](PickleMachine& m) { m.push_tuple(1); }},
    {'\x86', [](PickleMachine& m) { m.push_tuple(2); }},
    {'\x87', [](PickleMachine& m) { m.push_tuple(3); }},
    {'t', [](PickleMachine& m) { m.push_new({.kind = Kind::kTuple, .items = m.pop_marked()}); }},
    {'d',
     [](PickleMachine& m) {
       std::vector<PickleRef> items = m.pop_marked();
       m.push_new({.kind = Kind::kDict});
       m.add_to(Kind::kDict, std::move(items));
     }},
    {'c',
     [](PickleMachine& m) {
       const std::string_view module = m.take_line();
       m.push_global(module, m.take_line());
     }},
    {'\x93', [](PickleMachine& m) { m.push_stack_global(); }},
    {'Q', [](PickleMachine& m) { m.push_new({.kind = Kind::kPersistent, .items = {m.pop()}}); }},
    {'R', [](PickleMachine& m) { m.reduce(); }},
    {'b', [](PickleMachine& m) { m.build(); }},
    {'q', [](PickleMachine& m) { m.put(m.take<uint8_t>()); }},
    {'r', [](PickleMachine& m) { m.put(m.take<uint32_t>()); }},
    {'\x94', [](PickleMachine& m) { m.put(m.num_memos_); }},
    {'h', [](PickleMachine& m) { m.get(m.take<uint8_t>()); }},
    {'j', [](PickleMachine& m) { m.get(m.take<uint32_t>()); }},
    {'I',
     [](PickleMachine& m) {  // protocol 0's way to write True and False, which 2 still had
       const std::string_view text = m.take_line();
       if (text != "00" && text != "01") m.fail("a number as text");
       m.push_new({.kind = Kind::kBool, .integer = text == "01" ? 1 : 0});
     }},
}};

Pickle read_pickle(std::span<const std::byte> bytes,
                   std::string_view where,
                   std::span<const std::string_view> allowed,
                   const PickleLimits& limits) {
  return PickleMachine(bytes, where, allowed, limits).run();
}

const PickleValue* find_item(const Pickle& pickle, const PickleValue& dict, std::string_view name) {
  if (dict.kind != Kind::kDict) return nullptr;
  for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const PickleValue& key = pickle[dict.items[i]];
    if (key.kind == Kind::kString && key.text == name) return &pickle[dict.items[i + 1]];
  }
  return nullptr;
}

}  // namespace tgi::download
