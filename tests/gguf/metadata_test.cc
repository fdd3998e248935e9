// What metadata say of a tokenizer besides its tokens, and what of them is refused.
#include "base/json.h"
#include "engine/text/token_pairs.h"
#include "tests/gguf/gguf_tokenizer.h"
#include "tests/gguf/metadata_builder.h"
#include "tests/tokenizer/refusal.h"

namespace tgi {
namespace {

using Texts = std::vector<std::string>;
using Numbers = std::vector<int32_t>;

// Byte-level BPE of a few letters.
MetadataBuilder letters() {
  MetadataBuilder out;
  out.set("tokenizer.ggml.model", "gpt2")
      .set("tokenizer.ggml.tokens", Texts{"a", "b", "ab", "\u0120", "<s>", "<e>"})
      .set("tokenizer.ggml.token_type",
           Numbers{kNormal, kNormal, kNormal, kNormal, kControl, kControl})
      .set("tokenizer.ggml.merges", Texts{"a b"})
      .set("tokenizer.ggml.bos_token_id", 4)
      .set("tokenizer.ggml.eos_token_id", 5);
  return out;
}

// With these instead.
MetadataBuilder vocabulary_of(const Texts& tokens, const Numbers& types) {
  MetadataBuilder out = letters();
  out.set("tokenizer.ggml.tokens", tokens)
      .set("tokenizer.ggml.token_type", types)
      .set("tokenizer.ggml.merges", Texts{})
      .remove("tokenizer.ggml.bos_token_id")
      .remove("tokenizer.ggml.eos_token_id");
  return out;
}

Json file_of(const MetadataBuilder& metadata, const std::string& name) {
  return parse_json(gguf::tokenizer_files(metadata.build()).at(name));
}

Json ends_of(const MetadataBuilder& metadata) {
  return file_of(metadata, "generation_config.json").value("eos_token_id", Json());
}

Json ends_of(const Texts& tokens, int type) {
  return ends_of(vocabulary_of(tokens, Numbers(tokens.size(), type)));
}

std::string refusal(const MetadataBuilder& metadata, Code code) {
  return message_of(code, [&] { load_gguf_tokenizer(metadata.build()); });
}

bool has(const std::string& text, const std::string& part) {
  INFO(text << " / " << part);
  return text.find(part) != std::string::npos;
}

TEST_CASE("tokens are added around a text as the metadata say") {
  const auto ids = [](const MetadataBuilder& metadata) {
    return load_gguf_tokenizer(metadata.build())->encode("ab", true);
  };
  CHECK(ids(letters()) == Numbers{2});
  CHECK(ids(letters().set("tokenizer.ggml.add_bos_token", true)) == Numbers{4, 2});
  CHECK(ids(letters().set("tokenizer.ggml.add_eos_token", true)) == Numbers{2, 5});
  CHECK(ids(letters().set("tokenizer.ggml.pre", "llama-bpe")) == Numbers{4, 2});
  CHECK(ids(letters()
                .set("tokenizer.ggml.pre", "llama-bpe")
                .set("tokenizer.ggml.add_bos_token", false)) == Numbers{2});
}

TEST_CASE("two texts have a separator between them where the metadata say so") {
  MetadataBuilder metadata = letters();
  metadata.set("tokenizer.ggml.add_bos_token", true)
      .set("tokenizer.ggml.add_eos_token", true)
      .set("tokenizer.ggml.add_sep_token", true);
  const auto ids = [&] {
    const auto tokenizer = load_gguf_tokenizer(metadata.build());
    return encode_typed(*tokenizer, "a", "b", true).ids;
  };
  CHECK(ids() == Numbers{4, 0, 5, 5, 1, 5});
  metadata.set("tokenizer.ggml.seperator_token_id", 3);
  CHECK(ids() == Numbers{4, 0, 5, 3, 1, 5});
  metadata.set("tokenizer.ggml.add_sep_token", false);
  CHECK(ids() == Numbers{4, 0, 5, 1, 5});
}

TEST_CASE("kinds of tokens decide how they are found and shown") {
  const auto tokenizer =
      load_gguf_tokenizer(vocabulary_of({"<", "s", ">", "<s>", "s>"},
                                        {kNormal, kNormal, kNormal, kControl, kUserDefined})
                              .build());
  CHECK(tokenizer->encode("<s>s>s", true) == Numbers{3, 4, 1});
  CHECK(tokenizer->decode(Numbers{3, 4, 1}, true) == "s>s");
  CHECK(tokenizer->decode(Numbers{3, 4, 1}, false) == "<s>s>s");
}

TEST_CASE("words of a vocabulary of words are cut where spaces and punctuation are") {
  MetadataBuilder metadata = vocabulary_of({"<unk>", "a", "b", "ab", "\u4E2D", "!"},
                                           {kUnknown, kNormal, kNormal, kNormal, kNormal, kNormal});
  metadata.set("tokenizer.ggml.model", "whitespace")
      .set("tokenizer.ggml.pre", "whitespace")
      .set("tokenizer.ggml.merges", Texts{"a b"})
      .set("tokenizer.ggml.unknown_token_id", 0);
  const auto ids = [&](const std::string& text) {
    return load_gguf_tokenizer(metadata.build())->encode(text, true);
  };
  CHECK(ids("ab a b") == Numbers{3, 1, 2});
  CHECK(ids(" ab!\n\u4E2Dab") == Numbers{3, 5, 4, 3});
  CHECK(ids("abA") == Numbers{3, 0});
  metadata.set("tokenizer.ggml.normalizer.lowercase", true);
  CHECK(ids("AB A") == Numbers{3, 1});
}

TEST_CASE("a turn ends with the tokens that the metadata name") {
  CHECK(ends_of(letters()) == Json({5}));
  CHECK(
      ends_of(
          letters().set("tokenizer.ggml.eot_token_id", 1).set("tokenizer.ggml.eom_token_id", 0)) ==
      Json({0, 1, 5}));
  CHECK(ends_of(letters().set("tokenizer.ggml.eot_token_id", -1)) == Json({5}));
}

TEST_CASE("a turn ends with tokens of the texts that families gave them") {
  CHECK(ends_of({"a", "<|im_end|>", "<|endoftext|>"}, kControl) == Json({1, 2}));
  CHECK(ends_of({"a", "<|im_end|>", "</s>"}, kUserDefined) == Json({1}));
  CHECK(ends_of({"a", "<|im_end|>"}, kNormal) == Json());
  CHECK(ends_of({"</s>", "<|tool_response>"}, kControl) == Json({1}));
}

TEST_CASE("a turn ends with all tokens of a list") {
  MetadataBuilder metadata = letters();
  metadata.set("tokenizer.ggml.eos_token_ids", Numbers{5, 1, 3});
  CHECK(ends_of(metadata) == Json({1, 3, 5}));
  metadata.set("tokenizer.ggml.eos_token_ids", Numbers{5, 6});
  CHECK(has(refusal(metadata, Code::kInvalidArgument), "tokenizer.ggml.eos_token_ids"));
}

TEST_CASE("tokens that are never to be drawn are those of generation_config.json") {
  MetadataBuilder metadata = vocabulary_of({"a", "b", "c"}, {kNormal, kNormal, kNormal});
  CHECK(!file_of(metadata, "generation_config.json").contains("suppress_tokens"));
  metadata.set("tokenizer.ggml.suppress_tokens", Numbers{2, 1});
  CHECK(file_of(metadata, "generation_config.json").at("suppress_tokens") == Json({2, 1}));
}

TEST_CASE("a vocabulary whose cuts are not named is known by a token at its place") {
  Texts tokens(128010, "x");
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = "t" + std::to_string(i);
  const auto cuts = [&](const char* pre) {
    MetadataBuilder metadata = vocabulary_of(tokens, Numbers(tokens.size(), kNormal));
    metadata.set("tokenizer.ggml.bos_token_id", 0);
    if (pre != nullptr) metadata.set("tokenizer.ggml.pre", pre);
    return file_of(metadata, "tokenizer.json")["pre_tokenizer"];
  };
  const Json of_llama3 = cuts("llama-bpe");
  CHECK(cuts(nullptr) != of_llama3);
  tokens[128009] = "<|eot_id|>";
  for (const char* pre : {"", "default", static_cast<const char*>(nullptr)}) {
    CHECK(cuts(pre) == of_llama3);
  }
  CHECK(cuts("gpt-2") != of_llama3);
}

TEST_CASE("what characters become may be in base64, a text for each digit") {
  MetadataBuilder metadata = letters();
  metadata.set("tokenizer.ggml.model", "t5")
      .set("tokenizer.ggml.scores", std::vector<float>(6, -1.0F))
      .set("tokenizer.ggml.precompiled_charsmap", Texts{"A", "A", "A", "A", "A", "A", "=", "="});
  const Json tree = file_of(metadata, "tokenizer.json");
  CHECK(tree["normalizer"].dump().find("\"AAAAAA==\"") != std::string::npos);
  metadata.set("tokenizer.ggml.precompiled_charsmap", Texts{"A", "?"});
  CHECK_THROWS_AS(gguf::tokenizer_files(metadata.build()), Error);
}

TEST_CASE("the end of a message is no end of a turn where another token is") {
  CHECK(ends_of({"<|end|>", "<|return|>", "<|call|>"}, kControl) == Json({1, 2}));
  CHECK(ends_of({"<|end|>", "<|flush|>", "<|calls|>"}, kControl) == Json({1, 2}));
  CHECK(ends_of({"<|end|>", "<|assistant|>"}, kControl) == Json({0}));
}

TEST_CASE("chat templates are named as transformers names them") {
  const auto templates = [](const MetadataBuilder& metadata) {
    return file_of(metadata, "tokenizer_config.json").value("chat_template", Json());
  };
  CHECK(templates(letters()) == Json());
  CHECK(templates(letters().set("tokenizer.chat_template", "x")) == Json("x"));
  const Json named = templates(letters()
                                   .set("tokenizer.chat_template", "x")
                                   .set("tokenizer.chat_templates", Texts{"tool_use"})
                                   .set("tokenizer.chat_template.tool_use", "y"));
  CHECK(named == Json::array({{{"name", "tool_use"}, {"template", "y"}},
                              {{"name", "default"}, {"template", "x"}}}));
}

TEST_CASE("special tokens of a template come by id") {
  const Json config =
      file_of(letters().set("tokenizer.ggml.padding_token_id", 0), "tokenizer_config.json");
  CHECK(config["bos_token"] == "<s>");
  CHECK(config["eos_token"] == "<e>");
  CHECK(config["pad_token"] == "a");
  CHECK_FALSE(config.contains("unk_token"));
}

TEST_CASE("a kind's usual ids stand for those that are not named") {
  const auto named = [](const char* kind, const Texts& tokens) {
    MetadataBuilder metadata = vocabulary_of(tokens, Numbers(tokens.size(), kControl));
    metadata.set("tokenizer.ggml.model", kind);
    return file_of(metadata, "tokenizer_config.json");
  };
  const Json config = named("llama", {"<unk>", "<s>", "</s>"});
  CHECK(config["bos_token"] == "<s>");
  CHECK(config["eos_token"] == "</s>");
  CHECK(config["unk_token"] == "<unk>");
  CHECK(config["add_bos_token"] == true);
  CHECK_FALSE(named("llama", {"a", "b"}).contains("eos_token"));
}

TEST_CASE("special tokens of Phi 3 take the white space behind them") {
  MetadataBuilder metadata;
  metadata.set("tokenizer.ggml.model", "llama")
      .set("tokenizer.ggml.tokens", Texts{"<unk>", "<s>", "</s>", "\u2581", "a", "<|end|>"})
      .set("tokenizer.ggml.scores", std::vector<float>{0, 0, 0, -1, -2, 0})
      .set("tokenizer.ggml.token_type",
           Numbers{kUnknown, kControl, kControl, kNormal, kNormal, kControl})
      .set("tokenizer.ggml.add_space_prefix", false);
  const auto ids = [&] {
    return load_gguf_tokenizer(metadata.build())->encode("<|end|> \na<s> a", false);
  };
  metadata.set("general.architecture", "llama");
  CHECK(ids() == Numbers{5, 3, 0, 4, 1, 3, 4});
  metadata.set("general.architecture", "phi3");
  CHECK(ids() == Numbers{5, 4, 1, 3, 4});
  metadata.set("general.architecture", "llama").set("general.name", "Phi-3-mini");
  CHECK(ids() == Numbers{5, 4, 1, 3, 4});
}

TEST_CASE("metadata that are not known are refused by name") {
  CHECK(has(refusal(letters().set("tokenizer.ggml.dropout", 1), Code::kUnsupported),
            "tokenizer.ggml.dropout"));
  const std::string pre =
      refusal(letters().set("tokenizer.ggml.pre", "esperanto"), Code::kUnsupported);
  CHECK(has(pre, "'esperanto'"));
  CHECK(has(pre, "llama-bpe"));
  for (const char* kind : {"rwkv", "plamo2"}) {
    CHECK(has(refusal(letters().set("tokenizer.ggml.model", kind), Code::kUnsupported), kind));
  }
  for (const char* kind : {"none", "no_vocab"}) {
    CHECK(has(refusal(letters().set("tokenizer.ggml.model", kind), Code::kUnsupported),
              "no tokenizer"));
  }
}

TEST_CASE("only a vocabulary of bytes can do without merges") {
  const auto of_size = [](size_t size) {
    Texts tokens;
    for (size_t i = 0; i < size; ++i) tokens.push_back("t" + std::to_string(i));
    MetadataBuilder metadata = vocabulary_of(tokens, Numbers(size, kNormal));
    metadata.remove("tokenizer.ggml.merges");
    return metadata;
  };
  CHECK(load_gguf_tokenizer(of_size(256).build())->vocab_size() == 256);
  CHECK(has(refusal(of_size(257), Code::kInvalidArgument), "tokenizer.ggml.merges"));
}

TEST_CASE("metadata that make no sense are refused") {
  const auto code = Code::kInvalidArgument;
  CHECK(has(refusal(letters().remove("tokenizer.ggml.model"), Code::kUnsupported),
            "tokenizer.ggml.model"));
  CHECK(has(refusal(letters().remove("tokenizer.ggml.tokens"), code), "tokenizer.ggml.tokens"));
  CHECK(has(refusal(letters().set("tokenizer.ggml.merges", Texts{"ab"}), code), "\"ab\""));
  CHECK(has(refusal(letters().set("tokenizer.ggml.merges", Texts{"a x"}), code), "\"x\""));
  CHECK(has(refusal(letters().set("tokenizer.ggml.merges", 3), code), "an array of strings"));
  CHECK(has(refusal(letters().set("tokenizer.ggml.token_type", Numbers{1}), code),
            "expected 6 elements"));
  CHECK(has(refusal(letters().set("tokenizer.ggml.token_type", Numbers{1, 1, 1, 1, 3, 9}), code),
            "got 9"));
  CHECK(has(refusal(letters().set("tokenizer.ggml.eos_token_id", 6), code), "eos_token_id"));
  CHECK(has(
      refusal(
          letters().remove("tokenizer.ggml.eos_token_id").set("tokenizer.ggml.add_eos_token", true),
          code),
      "eos_token_id"));
  CHECK(has(refusal(letters().set("tokenizer.ggml.model", "bert"), code), "seperator_token_id"));
}

}  // namespace
}  // namespace tgi
