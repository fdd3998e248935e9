#include "tests/tokenizer/golden.h"

#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "base/files/file_source.h"
#include "engine/text/token_pairs.h"

namespace tgi {
namespace {

void append_packed(int32_t value, std::string& out) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);  // x86-64 and arm64 are little-endian
  out.append(bytes, sizeof bytes);
}

}  // namespace

std::string golden_path(const std::string& name) {
  return std::string(TGI_SOURCE_DIR) + "/tests/tokenizer/golden/" + name;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("can't read " + path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::string> read_lines(const std::string& path) {
  const std::string contents = read_file(path);
  std::vector<std::string> lines;
  for (size_t at = 0; at < contents.size();) {
    const size_t end = std::min(contents.find('\n', at), contents.size());
    lines.push_back(contents.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string unescaped(std::string_view line) {
  std::string text;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\' || i + 1 == line.size()) {
      text += line[i];
      continue;
    }
    const char c = line[++i];
    text += c == 'n' ? '\n' : c == 'r' ? '\r' : c == 't' ? '\t' : c;
  }
  return text;
}

std::vector<std::string> read_cases() {
  std::vector<std::string> cases = read_lines(golden_path("cases.txt"));
  for (std::string& text : cases) text = unescaped(text);
  return cases;
}

std::unique_ptr<Tokenizer> load_folder(const std::string& folder) {
  return load_tokenizer(*open_folder(folder));
}

std::unique_ptr<Tokenizer> load_contents(const std::string& name,
                                         const std::string& contents,
                                         const std::string& config) {
  const auto bytes_of = [](const std::string& text) {
    return std::as_bytes(std::span<const char>(text.data(), text.size()));
  };
  std::vector<EmbeddedFile> files = {{name, bytes_of(contents)}};
  if (!config.empty()) files.push_back({"tokenizer_config.json", bytes_of(config)});
  return load_tokenizer(*open_embedded("test", files));
}

std::string changed_golden(const std::string& name, const std::string& changed) {
  Json document = parse_json(read_file(golden_path(name + "/tokenizer.json")));
  document.merge_patch(parse_json(changed));
  return document.dump();
}

std::string fnv(std::string_view bytes) {
  uint64_t value = 0xCBF29CE484222325U;
  for (const char byte : bytes) value = (value ^ static_cast<unsigned char>(byte)) * 0x100000001B3U;
  return fmt::format("{:016x}", value);
}

std::vector<std::string> encode_hashes(const Tokenizer& tokenizer,
                                       std::span<const std::string> texts,
                                       size_t group) {
  std::vector<std::string> hashes;
  for (size_t at = 0; at < texts.size(); at += group) {
    std::string packed;
    for (const std::string& text : texts.subspan(at, std::min(group, texts.size() - at))) {
      const std::vector<int32_t> ids = tokenizer.encode(text, true);
      append_packed(static_cast<int32_t>(ids.size()), packed);
      for (const int32_t id : ids) append_packed(id, packed);
    }
    hashes.push_back(fnv(packed));
  }
  return hashes;
}

std::string pairs_hash(const Tokenizer& tokenizer, std::span<const std::string> texts) {
  std::string packed;
  for (size_t i = 0; i + 1 < texts.size(); ++i) {
    const TypedIds pair = encode_typed(tokenizer, texts[i], texts[i + 1], i % 2 == 0);
    append_packed(static_cast<int32_t>(pair.ids.size()), packed);
    for (const int32_t id : pair.ids) append_packed(id, packed);
    for (const int32_t type : pair.type_ids) append_packed(type, packed);
  }
  return fnv(packed);
}

std::string run_on(const Tokenizer& tokenizer, std::span<const int32_t> ids) {
  std::string text;
  const std::unique_ptr<RunningText> running = tokenizer.running_text(true);
  for (const int32_t id : ids) running->push(id, text);
  running->finish(text);
  return text;
}

std::vector<std::vector<int32_t>> random_ids(const Tokenizer& tokenizer,
                                             size_t count,
                                             bool without_special) {
  uint64_t state = 1;
  std::vector<std::vector<int32_t>> lists(count);
  for (size_t index = 0; index < count; ++index) {
    for (size_t i = 0; i < 1 + index % 9; ++i) {
      state = (state * 1103515245 + 12345) % (uint64_t{1} << 31);
      const auto id =
          static_cast<int32_t>((state >> 8) % static_cast<uint64_t>(tokenizer.vocab_size()));
      if (!(without_special && tokenizer.is_special(id))) lists[index].push_back(id);
    }
  }
  return lists;
}

std::vector<std::string> decode_hashes(const Tokenizer& tokenizer,
                                       size_t count,
                                       size_t group,
                                       bool without_special) {
  const auto lists = random_ids(tokenizer, count, without_special);
  std::vector<std::string> hashes;
  for (size_t at = 0; at < lists.size(); at += group) {
    std::string joined;
    for (size_t i = at; i < std::min(at + group, lists.size()); ++i) {
      if (i != at) joined += '\0';
      if (!without_special) joined += tokenizer.decode(lists[i], false) + '\0';
      joined += tokenizer.decode(lists[i], true);
    }
    hashes.push_back(fnv(joined));
  }
  return hashes;
}

}  // namespace tgi
