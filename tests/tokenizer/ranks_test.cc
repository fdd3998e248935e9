// Folders whose tokenizer is a list of ranks: tekken.json, and tiktoken's files.
#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <span>
#include <string>

#include "base/error.h"
#include "base/files/file_source.h"
#include "base/json.h"
#include "engine/text/token_spans.h"
#include "engine/text/tokenizer/byte_ranks.h"
#include "engine/text/tokenizer_parts.h"
#include "tests/catch.h"
#include "tests/tokenizer/golden.h"
#include "tests/tokenizer/refusal.h"

namespace tgi {
namespace {

constexpr Code kBroken = Code::kInvalidArgument;
constexpr int32_t kNumRanks = 1100;

// The files of a folder, by name.
class RankFolder final : public FileSource {
 public:
  std::map<std::string, std::string> texts;

  std::optional<std::span<const std::byte>> find(const std::string& name) const override {
    const auto it = texts.find(name);
    if (it == texts.end()) return std::nullopt;
    return std::as_bytes(std::span(it->second));
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> out;
    for (const auto& [name, text] : texts) out.push_back(name);
    return out;
  }
  std::string describe(const std::string& name) const override { return "folder/" + name; }
};

std::string golden_ranks() {
  return read_file(golden_path("ranks/ranks.tiktoken"));
}

// Of the golden ranks under a name, with a tokenizer_config.json.
RankFolder folder_of(const std::string& name, const Json& config) {
  RankFolder out;
  out.texts[name] = golden_ranks();
  out.texts["tokenizer_config.json"] = config.dump();
  return out;
}

RankFolder tekken_with(const std::function<void(Json&)>& change) {
  Json document = parse_json(read_file(golden_path("ranks/tekken.json")));
  change(document);
  RankFolder out;
  out.texts["tekken.json"] = document.dump();
  return out;
}

std::string line_of(std::span<const int32_t> ids) {
  return fmt::format("{}", fmt::join(ids, " "));
}

// Texts of one golden file and what another says of them.
void check_ids(const Tokenizer& tokenizer, const std::string& texts_name, const std::string& name) {
  const std::vector<std::string> texts = read_lines(golden_path("ranks/" + texts_name));
  const std::vector<std::string> ids = read_lines(golden_path("ranks/" + name));
  REQUIRE(texts.size() == ids.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string text = unescaped(texts[i]);
    INFO(name << ": " << text);
    const std::vector<int32_t> encoded = tokenizer.encode(text, false);
    CHECK(line_of(encoded) == ids[i]);
    std::string streamed;
    for (size_t at = 0; at < encoded.size(); ++at) {
      tokenizer.append_bytes(encoded[at], at == 0, streamed);
    }
    CHECK(tokenizer.decode(encoded, false) == streamed);
    if (name != "qwen.ids") CHECK(streamed == text);  // which is normalised
  }
}

Json listed(std::initializer_list<std::pair<int32_t, const char*>> tokens) {
  Json out = Json::object();
  for (const auto& [id, content] : tokens) {
    out[std::to_string(id)] = {{"content", content}, {"special", true}};
  }
  return out;
}

std::string refusal_of(Code code, const RankFolder& folder) {
  return message_of(code, [&] { (void)load_tokenizer(folder); });
}

std::string base64_of(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t bits = 0;
    const size_t count = std::min<size_t>(3, bytes.size() - at);
    for (size_t i = 0; i < 3; ++i) {
      bits = bits << 8 | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    }
    for (size_t i = 0; i < 4; ++i) text += i <= count ? kDigits[bits >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

// As many ranks as Llama 3 has: all texts of one byte, of two, and some of three.
std::string ranks_of_llama3() {
  std::string out;
  for (int rank = 0; rank < 128'000; ++rank) {
    std::string bytes;
    if (rank >= 256 + 65'536) bytes += static_cast<char>('a');
    if (rank >= 256) bytes += static_cast<char>((rank - 256) >> 8 & 0xFF);
    bytes += static_cast<char>(rank & 0xFF);
    out += fmt::format("{} {}\n", base64_of(bytes), rank);
  }
  return out;
}

}  // namespace

TEST_CASE("a tekken.json gives mistral-common's ids") {
  const auto tokenizer = load_folder(golden_path("ranks"));
  check_ids(*tokenizer, "texts.txt", "tekken.ids");
  check_ids(*tokenizer, "special.txt", "special.ids");
  CHECK(tokenizer->vocab_size() == 1040);
  CHECK(tokenizer->id_of("<s>") == 1);
  CHECK(tokenizer->id_of("<SPECIAL_39>") == 39);
  CHECK(!tokenizer->id_of("<SPECIAL_40>"));
  CHECK(tokenizer->encode("a", true) == std::vector<int32_t>{1, 40 + 'a'});
  CHECK(tokenizer->is_special(39));
  CHECK(!tokenizer->is_special(40));
  CHECK(tokenizer->decode(std::vector<int32_t>{1, 40 + 'a', 39, 2}, true) == "a");
  CHECK(tokenizer->decode(std::vector<int32_t>{1, 40 + 'a', 39}, false) == "<s>a<SPECIAL_39>");
}

TEST_CASE("tokens of a tekken.json stand where transformers' conversion says") {
  const auto tokenizer = load_folder(golden_path("ranks"));
  const std::vector<std::string> texts = read_lines(golden_path("ranks/texts.txt"));
  const std::vector<std::string> spans = read_lines(golden_path("ranks/tekken.spans"));
  REQUIRE(texts.size() == spans.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string text = unescaped(texts[i]);
    if (spans[i] == "-") continue;
    INFO(text);
    std::string line;
    for (const TextSpan& span :
         token_spans(*tokenizer, text, tokenizer->encode(text, false), false)) {
      line += fmt::format("{}{}-{}", line.empty() ? "" : " ", span.start, span.stop);
    }
    CHECK(line == spans[i]);
  }
}

TEST_CASE("a tekken.json without special tokens has those of its time") {
  RankFolder folder = tekken_with([](Json& document) {
    document.erase("special_tokens");
    document["config"]["version"] = "v3";
    document["multimodal"] = {{"image_patch_size", 16}, {"max_image_size", 1024}};
  });
  const auto tokenizer = load_tokenizer(folder);
  CHECK(tokenizer->id_of("[TOOL_CONTENT]") == 19);
  CHECK(tokenizer->id_of("<SPECIAL_20>") == 20);
  CHECK(tokenizer->encode("[IMG]", false) == std::vector<int32_t>{10});
  folder.texts["tokenizer_config.json"] = R"({"add_bos_token": false, "add_eos_token": true})";
  CHECK(load_tokenizer(folder)->encode("a", true) == std::vector<int32_t>{40 + 'a', 2});
}

TEST_CASE("a tekken.json that is none is refused with the place") {
  const auto refused = [](Code code, const std::function<void(Json&)>& change) {
    return refusal_of(code, tekken_with(change));
  };
  using Catch::Contains;
  CHECK_THAT(refused(kBroken, [](Json& d) { d["vocab"][300]["rank"] = 299; }),
             Contains("folder/tekken.json") && Contains("vocab[300].rank: expected 300, got 299"));
  CHECK_THAT(refused(kBroken, [](Json& d) { d["vocab"][300]["token_bytes"] = "QQ="; }),
             Contains("vocab[300].token_bytes: expected base64"));
  CHECK_THAT(refused(kBroken, [](Json& d) { d["vocab"][300]["token_bytes"] = "QQ=="; }),
             Contains("vocab[300]: the same bytes as the token with the id 105"));
  CHECK_THAT(refused(kBroken, [](Json& d) { d["vocab"][300]["token_bytes"] = 3; }),
             Contains("vocab[300].token_bytes"));
  CHECK_THAT(refused(kBroken, [](Json& d) { d["vocab"][300]["token_bytes"] = ""; }),
             Contains("vocab[300]: a token of no bytes"));
  CHECK_THAT(refused(kBroken, [](Json& d) { d["vocab"][3] = Json::array(); }),
             Contains("vocab[3]: expected an object"));
  CHECK_THAT(refused(kBroken, [](Json& d) { d["vocab"][3] = "a"; }),
             Contains("vocab[3]: expected an object"));
  CHECK_THAT(refused(kBroken, [](Json& d) { d["vocab"][3]["more"] = 1; }), Contains("more"));
  CHECK_THAT(refused(kBroken, [](Json& d) { d["vocab"] = Json::object(); }), Contains("vocab"));
  CHECK_THAT(refused(kBroken, [](Json& d) { d.erase("vocab"); }), Contains("vocab"));
  CHECK_THAT(refused(kBroken, [](Json& d) { d["vocab"] = Json::array(); }),
             Contains("default_vocab_size: expected from 40 to 40"));
  CHECK_THAT(refused(kBroken, [](Json& d) { d["config"]["default_vocab_size"] = 1141; }),
             Contains("default_vocab_size: expected from 40 to 1140"));
  CHECK_THAT(refused(kBroken, [](Json& d) { d["config"]["default_vocab_size"] = 240; }),
             Contains("no token for the byte 0xc8"));
  CHECK_THAT(refused(kBroken, [](Json& d) { d["config"]["default_num_special_tokens"] = 6; }),
             Contains("default_num_special_tokens: expected from 7"));
  CHECK_THAT(refused(kBroken, [](Json& d) { d["config"]["default_num_special_tokens"] = 1e9; }),
             Contains("default_num_special_tokens"));
  CHECK_THAT(refused(kBroken, [](Json& d) { d["config"].erase("pattern"); }), Contains("pattern"));
  CHECK_THAT(refused(Code::kUnsupported, [](Json& d) { d["config"]["pattern"] = "("; }),
             Contains("folder/tekken.json"));
  CHECK_THAT(refused(Code::kUnsupported, [](Json& d) { d["config"]["pattern"] = "a{1,3}+|."; }),
             Contains("config.pattern"));
  CHECK_THAT(refused(Code::kUnsupported, [](Json& d) { d["config"]["version"] = "v16"; }),
             Contains("\"v16\"") && Contains("v15"));
  CHECK_THAT(refused(kBroken, [](Json& d) { d.erase("special_tokens"); }),
             Contains("special_tokens") && Contains("v13"));
  CHECK_THAT(refused(kBroken, [](Json& d) { d["special_tokens"][2]["rank"] = 5; }),
             Contains("special_tokens[2].rank"));
  CHECK_THAT(refused(kBroken, [](Json& d) { d["special_tokens"][2]["token_str"] = "<s>"; }),
             Contains("\"<s>\": is there twice"));
  CHECK_THAT(refused(kBroken, [](Json& d) { d["special_tokens"][1]["token_str"] = "<bos>"; }),
             Contains("\"<s>\""));
  CHECK_THAT(refused(kBroken, [](Json& d) { d["special_tokens"] = 3; }),
             Contains("special_tokens"));
  CHECK_THAT(refused(kBroken, [](Json& d) { d["video"] = 3; }), Contains("video"));
  const std::string whole = read_file(golden_path("ranks/tekken.json"));
  for (size_t size = 0; size < whole.size(); size += 1009) {
    RankFolder cut;
    cut.texts["tekken.json"] = whole.substr(0, size);
    CHECK_THAT(refusal_of(kBroken, cut), Contains("folder/tekken.json"));
  }
}

TEST_CASE("files of ranks give tiktoken's ids") {
  const Json end = listed({{kNumRanks, "[BOS]"}});
  check_ids(
      *load_tokenizer(folder_of("tokenizer.model", {{"tokenizer_class", "PreTrainedTokenizerFast"},
                                                    {"added_tokens_decoder", end}})),
      "texts.txt", "llama3.ids");
  check_ids(*load_tokenizer(folder_of("tiktoken.model", {{"tokenizer_class", "TikTokenTokenizer"},
                                                         {"added_tokens_decoder", end}})),
            "texts.txt", "kimi.ids");
  const auto qwen =
      load_tokenizer(folder_of("qwen.tiktoken", {{"tokenizer_class", "QWenTokenizer"}}));
  check_ids(*qwen, "texts.txt", "qwen.ids");
  CHECK(qwen->id_of("<|endoftext|>") == kNumRanks);
  CHECK(qwen->id_of("<|im_end|>") == kNumRanks + 2);
  CHECK(qwen->id_of("<|extra_204|>") == kNumRanks + 207);
  CHECK(qwen->vocab_size() == kNumRanks + 208);
  CHECK(qwen->encode("<|im_start|>a", true) == std::vector<int32_t>{kNumRanks + 1, 'a'});
}

TEST_CASE("the class of a file of ranks is that of the folder's code or of the model's type") {
  RankFolder qwen =
      folder_of("some.tiktoken",
                {{"auto_map", {{"AutoTokenizer", {"tokenization_qwen.QWenTokenizer", nullptr}}}}});
  CHECK(load_tokenizer(qwen)->id_of("<|im_start|>") == kNumRanks + 1);
  qwen.texts["tokenizer_config.json"] = "{}";
  qwen.texts["config.json"] = R"({"model_type": "qwen"})";
  CHECK(has_tokenizer(qwen));
  CHECK(load_tokenizer(qwen)->id_of("<|im_start|>") == kNumRanks + 1);

  const auto glm = load_tokenizer(
      folder_of("tokenizer.model", {{"tokenizer_class", "ChatGLM4Tokenizer"},
                                    {"added_tokens_decoder", listed({{kNumRanks, "<|endoftext|>"},
                                                                     {kNumRanks + 2, "[gMASK]"},
                                                                     {kNumRanks + 4, "<sop>"}})}}));
  CHECK(glm->encode("a", true) == std::vector<int32_t>{kNumRanks + 2, kNumRanks + 4, 'a'});
  CHECK(glm->token_of(kNumRanks + 3) == fmt::format("<|reserved_token_{}|>", kNumRanks + 3));
}

TEST_CASE("Llama 3's special tokens are known where nothing lists them") {
  RankFolder folder;
  folder.texts["tokenizer.model"] = ranks_of_llama3();
  folder.texts["config.json"] = R"({"model_type": "llama"})";
  const auto old = load_tokenizer(folder);
  CHECK(old->vocab_size() == 128'256);
  CHECK(old->id_of("<|start_header_id|>") == 128'006);
  CHECK(old->id_of("<|eot_id|>") == 128'009);
  CHECK(old->id_of("<|reserved_special_token_2|>") == 128'004);
  CHECK(old->id_of("<|reserved_special_token_250|>") == 128'255);
  CHECK(old->encode("a", true) == std::vector<int32_t>{128'000, 'a'});
  folder.texts["config.json"] =
      R"({"model_type": "llama", "rope_scaling": {"rope_type": "llama3", "factor": 8.0}})";
  const auto newer = load_tokenizer(folder);
  CHECK(newer->id_of("<|finetune_right_pad_id|>") == 128'004);
  CHECK(newer->id_of("<|eom_id|>") == 128'008);
  CHECK(newer->id_of("<|python_tag|>") == 128'010);
  CHECK(newer->id_of("<|reserved_special_token_247|>") == 128'255);
}

TEST_CASE("a file of ranks that is none, or of which too little is known, is refused") {
  using Catch::Contains;
  const Json qwen = {{"tokenizer_class", "QWenTokenizer"}};
  const auto with_line = [&](const std::string& line) {
    RankFolder folder = folder_of("qwen.tiktoken", qwen);
    folder.texts["qwen.tiktoken"] += line + "\n";
    return folder;
  };
  CHECK_THAT(refusal_of(kBroken, with_line("enp6eg= 1100")),
             Contains("folder/qwen.tiktoken: line 1101: expected base64"));
  CHECK_THAT(refusal_of(kBroken, with_line("enp6eg==")),
             Contains("line 1101: expected base64, a "));
  CHECK_THAT(refusal_of(kBroken, with_line("enp6eg== x")), Contains("line 1101"));
  CHECK_THAT(refusal_of(kBroken, with_line("enp6eg== 99999999999999999999")),
             Contains("line 1101"));
  CHECK_THAT(refusal_of(kBroken, with_line("enp6eg== -1")), Contains("got -1"));
  CHECK_THAT(refusal_of(kBroken, with_line("enp6eg== 1000000000")), Contains("got 1000000000"));
  CHECK_THAT(refusal_of(kBroken, with_line("enp6eg== 7")), Contains("the id 7"));
  CHECK_THAT(refusal_of(kBroken, with_line("QQ== 1100")), Contains("the id 65"));
  CHECK_THAT(refusal_of(kBroken, with_line(base64_of(std::string(5000, 'x')) + " 1100")),
             Contains("5000 bytes; up to 4096"));
  CHECK_THAT(refusal_of(kBroken, with_line("\xFF\xFE")), Contains("line 1101"));
  RankFolder cut = folder_of("qwen.tiktoken", qwen);
  cut.texts["qwen.tiktoken"].resize(400);
  (void)refusal_of(kBroken, cut);
  cut.texts["qwen.tiktoken"] = "";
  CHECK_THAT(refusal_of(kBroken, cut), Contains("no token for the byte 0x00"));
  // Ranks need not follow each other.
  CHECK(load_tokenizer(with_line("enp6eg== 1200"))->id_of("<|endoftext|>") == 1201);

  CHECK_THAT(
      refusal_of(Code::kUnsupported, folder_of("x.tiktoken", {{"tokenizer_class", "HYTokenizer"}})),
      Contains("HYTokenizer") && Contains("QWenTokenizer") && Contains("tokenizer.json"));
  CHECK_THAT(refusal_of(Code::kUnsupported,
                        folder_of("tiktoken.model", {{"tokenizer_class", "TikTokenTokenizer"}})),
             Contains("added_tokens_decoder"));
  RankFolder llama = folder_of("tokenizer.model", Json::object());
  llama.texts["config.json"] = R"({"model_type": "llama"})";
  CHECK_THAT(refusal_of(Code::kUnsupported, llama), Contains("added_tokens_decoder"));
  const auto with_added = [&](int32_t id, const char* content) {
    return folder_of("tokenizer.model", {{"tokenizer_class", "PreTrainedTokenizerFast"},
                                         {"added_tokens_decoder", listed({{id, content}})}});
  };
  CHECK_THAT(refusal_of(kBroken, with_added(65, "<s>")), Contains("id 65"));
  CHECK_THAT(refusal_of(kBroken, with_added(10'000'000, "<s>")), Contains("10000000"));
  CHECK_THAT(refusal_of(kBroken, with_added(kNumRanks, "")), Contains("no text"));
  CHECK(load_tokenizer(with_added(65, "A"))->is_special(65));
  RankFolder two = folder_of("a.tiktoken", qwen);
  two.texts["b.tiktoken"] = golden_ranks();
  CHECK_THAT(refusal_of(kBroken, two), Contains("a.tiktoken, b.tiktoken"));
}

// For work on tokenizers: TGI_RANK_CASES=<file printed by make_rank_goldens --any>.
TEST_CASE("any folder of ranks gives the reference's ids", "[.]") {
  const char* path = std::getenv("TGI_RANK_CASES");
  REQUIRE(path != nullptr);
  const Json golden = parse_json(read_file(path));
  const auto texts = golden["texts"].get<std::vector<std::string>>();
  for (const auto& [folder, rows] : golden["folders"].items()) {
    const auto tokenizer = load_folder(folder);
    for (size_t i = 0; i < texts.size(); ++i) {
      INFO(folder << ", text " << i << ": " << Json(texts[i]).dump(-1, ' ', true));
      CHECK(tokenizer->encode(texts[i], true) == rows[i].get<std::vector<int32_t>>());
    }
  }
}

TEST_CASE("ranks as a list of merges give the same ids where no token is made in several ways") {
  const RankFolder folder = folder_of("qwen.tiktoken", {{"tokenizer_class", "QWenTokenizer"}});
  const TokenizerParts parts = read_tokenizer_parts(folder);
  Json document = parts.tree;
  for (const NamedToken& token : parts.vocabulary) {
    document["model"]["vocab"][token.text] = token.id;
  }
  for (const auto& [left, right] : parts.merges) {
    document["model"]["merges"].push_back({left, right});
  }
  check_ids(*load_contents("tokenizer.json", document.dump(), ""), "texts.txt", "qwen.ids");
}

}  // namespace tgi
