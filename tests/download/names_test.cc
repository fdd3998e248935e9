#include <map>

#include "base/error.h"
#include "cmd/download/file_choice.h"
#include "cmd/download/gguf_choice.h"
#include "cmd/download/hub_env.h"
#include "cmd/download/hub_names.h"
#include "cmd/download/hub_source.h"
#include "cmd/download/s3_source.h"
#include "tests/catch.h"

namespace tgi::download {
namespace {

Variables variables(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) -> std::optional<std::string> {
    const auto at = values.find(name);
    return at == values.end() ? std::nullopt : std::optional(at->second);
  };
}

std::vector<RemoteFile> listed(const std::vector<std::string>& names) {
  std::vector<RemoteFile> files;
  for (const std::string& name : names) {
    RemoteFile file;
    file.path = name;
    file.size = 10;
    files.push_back(file);
  }
  return files;
}

std::vector<std::string> chosen(const std::vector<std::string>& names,
                                const ChoiceRules& rules = {}) {
  std::vector<std::string> out;
  for (const RemoteFile& file : choose_files(listed(names), rules)) out.push_back(file.path);
  return out;
}

using Names = std::vector<std::string>;

TEST_CASE("hub names: what huggingface_hub takes is taken, with or without a revision") {
  CHECK(parse_hub_name("org/name") == HubName{"org/name", "main"});
  CHECK(parse_hub_name("gpt2") == HubName{"gpt2", "main"});
  CHECK(parse_hub_name("Qwen/Qwen2.5-0.5B_x@refs/pr/3") ==
        HubName{"Qwen/Qwen2.5-0.5B_x", "refs/pr/3"});
  for (const char* other : {"", "/abs", "./rel", "../up", "a/b/c", "a//b", "org/", "org/.hidden",
                            "org/name-", "a--b/c", "a/b..c", "a/b.git", "a b", "a/b\n", "~/x"}) {
    CHECK_FALSE(parse_hub_name(other));
  }
  CHECK_FALSE(parse_hub_name(std::string(97, 'a')));
  CHECK_THROWS_WITH(require_hub_name("a/b/c"), Catch::Contains("more than one '/'"));
}

TEST_CASE("hub names: a file by its quantisation or name, before or behind the revision") {
  CHECK(parse_hub_name("org/name:Q4_K_M") == HubName{"org/name", "main", "Q4_K_M"});
  for (const char* both : {"org/name:q8_0@v1", "org/name@v1:q8_0"}) {
    CHECK(parse_hub_name(both) == HubName{"org/name", "v1", "q8_0"});
  }
  CHECK(parse_hub_name("org/name:a/b c.gguf") == HubName{"org/name", "main", "a/b c.gguf"});
  for (const char* other : {"llama3.2:1b", "org/name:", "org/name:../x.gguf", "org/name:/x"}) {
    CHECK_FALSE(parse_hub_name(other));
  }
}

TEST_CASE("hub names: addresses of its pages stand for models") {
  const std::string endpoint = "https://mirror.org/hub";
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"hf.co/org/name:Q4_0", "org/name:Q4_0"},
      {"huggingface.co/org/name", "org/name"},
      {"https://huggingface.co/org/name/", "org/name"},
      {"https://www.huggingface.co/org/name?library=x#y", "org/name"},
      {"https://huggingface.co/org/name/tree/main", "org/name@main"},
      {"https://huggingface.co/org/name/blob/refs%2Fpr%2F1/a%20b.gguf",
       "org/name:a b.gguf@refs/pr/1"},
      {"https://hf.co/org/name/resolve/v1/sub/x.gguf?download=true", "org/name:sub/x.gguf@v1"},
      {"https://huggingface.co/org/name/resolve/main/model.safetensors", "org/name@main"},
      {"https://mirror.org/hub/org/name/resolve/main/x.gguf", "org/name:x.gguf@main"},
  };
  for (const auto& [address, name] : expected)
    CHECK(name_of_hub_address(address, endpoint) == name);
  for (const char* other : {"https://huggingface.co/org", "https://huggingface.co/spaces/a/b",
                            "https://mirror.org/hub/some/model", "https://example.org/org/name",
                            "org/name", "hf.co", "demo", ""}) {
    CHECK(name_of_hub_address(other, endpoint) == other);
  }
}

TEST_CASE("quantisations are read from names of files") {
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"Llama-3.2-1B-Instruct-Q4_K_M.gguf", "Q4_K_M"},
      {"tinyllama-1.1b-chat-v1.0.Q5_0.gguf", "Q5_0"},
      {"qwen2.5-0.5b-instruct-q8_0.gguf", "Q8_0"},
      {"model_iq2_xxs.gguf", "IQ2_XXS"},
      {"Qwen3-UD-Q4_K_XL.gguf", "UD-Q4_K_XL"},
      {"gpt-oss-20b-mxfp4.gguf", "MXFP4"},
      {"x-MXFP4_MOE.gguf", "MXFP4_MOE"},
      {"x-BF16-00001-of-00004.gguf", "BF16"},
      {"TQ1_0/weights.gguf", "TQ1_0"},
      {"Q6_K/x-00001-of-00002.gguf", "Q6_K"},
      {"x-Q4_K_M-imat.gguf", "Q4_K_M"},
      {"f16.gguf", "F16"},
      {"Qwen-7B.gguf", ""},
      {"model.gguf", ""},
  };
  for (const auto& [name, quantization] : expected) CHECK(quantization_of(name) == quantization);
}

TEST_CASE("hub names: a revision can't leave the folder of refs") {
  for (const char* good : {"main", "v1.0", "refs/pr/1", "feature/x", "0123abc"}) {
    CHECK_NOTHROW(check_revision(good));
  }
  for (const char* bad :
       {"", "/x", "a..b", "../x", "x/", "-x", "a b", "a:b", "a@b", "x.lock", "a\nb"}) {
    CHECK_THROWS_AS(check_revision(bad), Error);
  }
}

TEST_CASE("file names: whatever leaves the folder is refused") {
  for (const char* good : {"config.json", "a/b/c.bin", ".gitattributes", "..a", "a..b", "x y"}) {
    CHECK_NOTHROW(check_file_name(good));
  }
  for (const std::string bad : {"", "/a", "../a", "a/../b", "a/..", ".", "a/./b", "a//b", "a/",
                                "a\\b", "C:", "c:x", "a\nb", "a\x7f", "\xff\xfe"}) {
    CHECK_THROWS_AS(check_file_name(bad), Error);
  }
  CHECK_THROWS_AS(check_file_name(std::string("a\0b", 3)), Error);
  CHECK_THROWS_AS(check_file_name(std::string(256, 'a')), Error);
  CHECK_THROWS_WITH(check_file_name("a\x1b[31m"), Catch::Contains("\\x1b"));
}

TEST_CASE("percent encoding keeps what an address may hold") {
  CHECK(percent_encode("refs/pr/1", false) == "refs%2Fpr%2F1");
  CHECK(percent_encode("a b/c+d~e", true) == "a%20b/c%2Bd~e");
}

TEST_CASE("settings come from the environment as huggingface_hub reads them") {
  CHECK(read_hub_settings(variables({{"HOME", "/h"}})).cache_dir == "/h/.cache/huggingface/hub");
  CHECK(read_hub_settings(variables({{"HOME", "/h"}, {"XDG_CACHE_HOME", "/x"}})).cache_dir ==
        "/x/huggingface/hub");
  CHECK(read_hub_settings(variables({{"HOME", "/h"}, {"HF_HOME", "~/hf"}})).cache_dir ==
        "/h/hf/hub");
  CHECK(read_hub_settings(variables({{"HF_HUB_CACHE", "/c"}, {"HUGGINGFACE_HUB_CACHE", "/o"}}))
            .cache_dir == "/c");
  CHECK(read_hub_settings(variables({{"HUGGINGFACE_HUB_CACHE", "/o"}})).cache_dir == "/o");
  CHECK(read_hub_settings(variables({{"HF_ENDPOINT", "http://x:1//"}})).endpoint == "http://x:1");
  CHECK_THROWS_AS(read_hub_settings(variables({{"HF_ENDPOINT", "x"}})), Error);
  for (const char* yes : {"1", "on", "YES", "true"}) {
    CHECK(read_hub_settings(variables({{"HF_HUB_OFFLINE", yes}})).offline);
  }
  CHECK_FALSE(read_hub_settings(variables({{"HF_HUB_OFFLINE", "0"}})).offline);
  CHECK(read_hub_settings(variables({{"TRANSFORMERS_OFFLINE", "1"}})).offline);
  CHECK_FALSE(read_hub_settings(variables({{"HF_HUB_OFFLINE", "0"}, {"TRANSFORMERS_OFFLINE", "1"}}))
                  .offline);
  CHECK(read_hub_settings(variables({{"HF_TOKEN", " t\n"}})).token == "t");
  CHECK(read_hub_settings(variables({{"HUGGING_FACE_HUB_TOKEN", "t"}})).token == "t");
  CHECK(read_hub_settings(variables({{"HF_TOKEN", "t"}, {"HF_HUB_DISABLE_IMPLICIT_TOKEN", "1"}}))
            .token.empty());
  CHECK_THROWS_AS(read_hub_settings(variables({{"HF_TOKEN", "a\nb"}})), Error);
  CHECK_THROWS_AS(read_hub_settings(variables({{"HF_HUB_DOWNLOAD_TIMEOUT", "x"}})), Error);
}

TEST_CASE("paths: names in them are replaced, unknown ones stay") {
  const Variables some = variables({{"HOME", "/h"}, {"A", "x"}});
  CHECK(expand_path("~/a/$A/${A}b", some) == "/h/a/x/xb");
  CHECK(expand_path("$B/${B}/$", some) == "$B/${B}/$");
  CHECK(expand_path("a~", some) == "a~");
  CHECK(expand_path("${A", some) == "${A");
}

TEST_CASE("choice: safetensors before .bin, nothing nested, nothing of training") {
  CHECK(chosen({"config.json", "model.safetensors", "pytorch_model.bin", "tokenizer.json",
                "training_args.bin", "optimizer.pt", "runs/events.json", "original/x.safetensors",
                "flax_model.msgpack", "README.md", ".gitattributes", "trainer_state.json"}) ==
        Names{"config.json", "model.safetensors", "tokenizer.json", "README.md"});
  CHECK(chosen({"pytorch_model.bin", "training_args.bin", "config.json", "other.bin"}) ==
        Names{"pytorch_model.bin", "config.json"});
  CHECK(chosen({"model.bin", "x.pt"}) == Names{"model.bin"});
  CHECK(chosen({"model.safetensors", "tekken.json", "tiktoken.model", "qwen.tiktoken", "x.onnx"}) ==
        Names{"model.safetensors", "tekken.json", "tiktoken.model", "qwen.tiktoken"});
  // The modules of sentence-transformers, and nothing else that is nested.
  CHECK(chosen({"model.safetensors", "modules.json", "1_Pooling/config.json", "2_Dense/config.json",
                "2_Dense/model.safetensors", "2_Dense/pytorch_model.bin", "onnx/model.onnx",
                "openvino/config.json", "1_Pooling/deep/config.json"}) ==
        Names{"model.safetensors", "modules.json", "1_Pooling/config.json", "2_Dense/config.json",
              "2_Dense/model.safetensors"});
  CHECK(chosen({"pytorch_model.bin", "modules.json", "2_Dense/pytorch_model.bin",
                "onnx/pytorch_model.bin"}) ==
        Names{"pytorch_model.bin", "modules.json", "2_Dense/pytorch_model.bin"});
  CHECK(chosen({"consolidated.safetensors", "model-1.safetensors", "params.json"}) ==
        Names{"model-1.safetensors"});
  CHECK(chosen({"consolidated.safetensors"}) == Names{"consolidated.safetensors"});
  CHECK(chosen({"model.safetensors.index.json", "model-1.safetensors",
                "pytorch_model.bin.index.json"}) ==
        Names{"model.safetensors.index.json", "model-1.safetensors"});
  CHECK(chosen({"pytorch_model.bin.index.json", "pytorch_model-1.bin"}) ==
        Names{"pytorch_model.bin.index.json", "pytorch_model-1.bin"});
  CHECK_THROWS_WITH(chosen({"config.json", "x.onnx"}), Catch::Contains("1 .onnx"));
}

TEST_CASE("choice: --include replaces it, --exclude takes away") {
  const Names all = {"a.json", "b/c.json", "model.safetensors"};
  CHECK(chosen(all, {.include = {"*.json"}, .exclude = {}}) == Names{"a.json", "b/c.json"});
  CHECK(chosen(all, {.include = {"*"}, .exclude = {"b/"}}) == Names{"a.json", "model.safetensors"});
  CHECK(chosen(all, {.include = {}, .exclude = {"a*"}}) == Names{"model.safetensors"});
  CHECK_THROWS_AS(chosen(all, {.include = {"*.x"}, .exclude = {}}), Error);
}

TEST_CASE("the list of files: entries of LFS have the content's size and hash") {
  std::vector<RemoteFile> files;
  const std::string sha(64, 'a');
  const std::string oid(40, 'b');
  read_tree_page(R"([{"type":"directory","oid":"x","path":"d"},{"type":"file","oid":")" + oid +
                     R"(","size":3,"path":"d/a"},{"type":"file","oid":")" + oid +
                     R"(","size":9,"path":"m","lfs":{"oid":")" + sha +
                     R"(","size":9,"pointerSize":1}}])",
                 "hub", files);
  REQUIRE(files.size() == 2);
  CHECK(files[0].git_sha1 == oid);
  CHECK(files[0].blob == oid);
  CHECK(files[1].sha256 == sha);
  CHECK(files[1].blob == sha);
  CHECK(files[1].git_sha1.empty());
  for (const std::string& bad :
       Names{R"({})", R"([1])", R"([{"type":"file","path":"a","size":1,"oid":"../../x"}])",
             R"([{"type":"file","path":"a","size":-1,"oid":")" + oid + R"("}])",
             R"([{"type":"file","path":"../a","size":1,"oid":")" + oid + R"("}])"}) {
    CHECK_THROWS_AS(read_tree_page(bad, "hub", files), Error);
  }
}

TEST_CASE("the next page is the one the header Link calls next") {
  CHECK(next_page(R"(<https://h/x?c=1>; rel="next")") == "https://h/x?c=1");
  CHECK(next_page(R"(<a>; rel="prev", <b>; rel="next")") == "b");
  CHECK(next_page(R"(<a>; rel="prev")").empty());
  CHECK(next_page("<a").empty());
  CHECK(next_page("").empty());
}

TEST_CASE("a page of a bucket: keys below the prefix, md5 only of objects in one piece") {
  std::vector<RemoteFile> files;
  const std::string md5(32, '0');
  const std::string next = read_s3_page(
      "<ListBucketResult><IsTruncated>true</IsTruncated>"
      "<Contents><Key>m/</Key><Size>0</Size><ETag>x</ETag></Contents>"
      "<Contents><Key>m/a&amp;b.json</Key><Size>5</Size><ETag>&quot;" +
          md5 +
          "&quot;</ETag></Contents>"
          "<Contents><Key>m/w</Key><Size>7</Size><ETag>&quot;" +
          md5 +
          "-3&quot;</ETag></Contents>"
          "<NextContinuationToken>t</NextContinuationToken></ListBucketResult>",
      "m/", files);
  CHECK(next == "t");
  REQUIRE(files.size() == 2);
  CHECK(files[0].path == "a&b.json");
  CHECK(files[0].md5 == md5);
  CHECK(files[1].md5.empty());
  CHECK(files[1].size == 7);
  CHECK_THROWS_AS(read_s3_page("<html>", "", files), Error);
  CHECK_THROWS_AS(
      read_s3_page("<ListBucketResult><Contents><Key>m/../x</Key><Size>1</Size></Contents>", "m/",
                   files),
      Error);
}

}  // namespace
}  // namespace tgi::download
