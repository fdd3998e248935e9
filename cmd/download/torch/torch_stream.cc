#include "cmd/download/torch/torch_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"

namespace tgi::download {
namespace {

using Kind = PickleValue::Kind;

// A pickle of the magic number.
constexpr std::array<uint8_t, 15> kMagic = {0x80, 0x02, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46,
                                            0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, 0x2e};
constexpr int64_t kVersion = 1001;

class StreamReader {
 public:
  StreamReader(std::span<const std::byte> bytes,
               std::string_view where,
               std::span<const std::string_view> allowed)
      : rest_(bytes.subspan(kMagic.size())), where_(where), allowed_(allowed) {}

  TorchStream read(const ElementBytes& element_bytes) {
    check_version();
    check_machine();
    TorchStream out;
    out.pickle = next_pickle();
    const Sizes sizes = sizes_of(out.pickle, element_bytes);
    const Pickle keys = next_pickle();
    if (keys.root().kind != Kind::kList) fail("the keys of its storages are no list");
    for (const PickleRef ref : keys.root().items) {
      const PickleValue& key = keys[ref];
      if (key.kind != Kind::kString) fail("the key of a storage is no text");
      const auto size = sizes.find(key.text);
      if (size == sizes.end()) {
        fail(fmt::format("its storage {} belongs to nothing that was saved", printable(key.text)));
      }
      if (!out.storages.emplace(key.text, next_storage(key.text, size->second)).second) {
        fail(fmt::format("its storage {} is in it twice", printable(key.text)));
      }
    }
    return out;
  }

 private:
  using Sizes = std::map<std::string_view, int64_t, std::less<>>;  // bytes of an element, by key

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(Code::kInvalidArgument, fmt::format("{}: {}", where_, what));
  }

  Pickle next_pickle() {
    Pickle out = read_pickle(rest_.first(std::min(rest_.size(), PickleLimits{}.max_bytes)), where_,
                             allowed_);
    rest_ = rest_.subspan(out.num_bytes());
    return out;
  }

  void check_version() {
    const Pickle version = next_pickle();
    if (version.root().kind == Kind::kInteger && version.root().integer == kVersion) return;
    fail(fmt::format("a torch checkpoint of another version than {}", kVersion));
  }

  void check_machine() {
    const Pickle machine = next_pickle();
    const PickleValue* const little = find_item(machine, machine.root(), "little_endian");
    if (little == nullptr || little->kind != Kind::kBool) {
      fail("does not say on what machine it was written");
    }
    if (little->integer == 1) return;
    throw Error(Code::kUnsupported,
                fmt::format("{}: written on a machine of another kind, only little-endian "
                            "checkpoints are read",
                            where_));
  }

  Sizes sizes_of(const Pickle& pickle, const ElementBytes& element_bytes) const {
    Sizes out;
    for (size_t i = 0; i < pickle.size(); ++i) {
      const PickleValue& value = pickle[static_cast<PickleRef>(i)];
      if (value.kind != Kind::kPersistent) continue;
      const auto id = read_storage_id(pickle, value);
      if (!id) fail("a storage is described in another way than torch does");
      const int64_t bytes = element_bytes(id->type);
      if (bytes == 0) fail(fmt::format("{} is no storage type", printable(id->type)));
      if (out.emplace(id->key, bytes).first->second != bytes) {
        fail(fmt::format("its storage {} is of two types", printable(id->key)));
      }
    }
    return out;
  }

  std::span<const std::byte> take(std::string_view key, uint64_t size) {
    if (size > rest_.size()) {
      fail(fmt::format("cut off in its storage {}; is the download complete?", printable(key)));
    }
    const auto out = rest_.first(static_cast<size_t>(size));
    rest_ = rest_.subspan(out.size());
    return out;
  }

  std::span<const std::byte> next_storage(std::string_view key, int64_t element_bytes) {
    uint64_t count = 0;
    const auto written = take(key, sizeof count);
    for (size_t i = 0; i < written.size(); ++i) {
      count |= uint64_t{std::to_integer<uint8_t>(written[i])} << (8 * i);
    }
    uint64_t size = 0;
    if (__builtin_mul_overflow(count, static_cast<uint64_t>(element_bytes), &size)) {
      fail(fmt::format("its storage {} has {} elements", printable(key), count));
    }
    return take(key, size);
  }

  std::span<const std::byte> rest_;
  const std::string_view where_;
  const std::span<const std::string_view> allowed_;
};

}  // namespace

// ("storage", class, key, device, number of elements), and of old a part of another one.
std::optional<StorageId> read_storage_id(const Pickle& pickle, const PickleValue& value) {
  if (value.kind != Kind::kPersistent) return std::nullopt;
  const PickleValue& id = pickle[value.items[0]];
  if (id.kind != Kind::kTuple || id.items.size() < 5 || id.items.size() > 6) return std::nullopt;
  if (id.items.size() == 6 && pickle[id.items[5]].kind != Kind::kNone) return std::nullopt;
  const PickleValue& word = pickle[id.items[0]];
  const PickleValue& type = pickle[id.items[1]];
  const PickleValue& key = pickle[id.items[2]];
  const PickleValue& count = pickle[id.items[4]];
  if (word.kind != Kind::kString || word.text != "storage" || type.kind != Kind::kGlobal ||
      key.kind != Kind::kString || count.kind != Kind::kInteger) {
    return std::nullopt;
  }
  return StorageId{.type = type.text, .key = key.text, .count = count.integer};
}

bool looks_like_stream(std::span<const std::byte> bytes) {
  return bytes.size() > kMagic.size() &&
         std::equal(kMagic.begin(), kMagic.end(), bytes.begin(),
                    [](uint8_t a, std::byte b) { return a == std::to_integer<uint8_t>(b); });
}

TorchStream read_stream(std::span<const std::byte> bytes,
                        std::string_view where,
                        std::span<const std::string_view> allowed,
                        const ElementBytes& element_bytes) {
  return StreamReader(bytes, where, allowed).read(element_bytes);
}

}  // namespace tgi::download
