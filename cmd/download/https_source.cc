#include "cmd/download/https_source.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>
#include <set>
#include <stop_token>

#include "base/files/split_name.h"
#include "base/json.h"
#include "cmd/download/content_hash.h"
#include "cmd/download/hub_names.h"

namespace tgi::download {
namespace {

// The weights in the order of preference: an index and its shards, else one file.
constexpr std::array<std::string_view, 6> kWeights = {
    "model.safetensors.index.json", "model.safetensors",
    "pytorch_model.bin.index.json", "pytorch_model.bin",
    "adapter_model.safetensors",    "adapter_model.bin"};
constexpr std::array<std::string_view, 16> kAside = {
    "config.json",     "generation_config.json",  "tokenizer.json",      "tokenizer_config.json",
    "tokenizer.model", "special_tokens_map.json", "vocab.json",          "vocab.txt",
    "merges.txt",      "added_tokens.json",       "chat_template.jinja", "adapter_config.json",
    "tekken.json",     "tiktoken.model",          "qwen.tiktoken",       "README.md"};

class HttpsSource final : public Source {
 public:
  HttpsSource(std::string base, std::string file)
      : base_(std::move(base)), file_(std::move(file)) {}

  std::string describe() const override { return shown_url(base_); }

  Listing list(HttpClient& client, std::stop_token stop, const OnRetry& on_retry) override {
    Listing listing;
    const auto add = [&](const std::string& path) {
      std::optional<RemoteFile> file = look_for(client, path, stop, on_retry);
      if (file) listing.files.push_back(std::move(*file));
      return !listing.files.empty() && listing.files.back().path == path;
    };
    if (!file_.empty()) {
      for (const std::string& name : all_parts(file_)) {
        if (add(name)) continue;
        throw Error(Code::kNotFound, fmt::format("{}/{} is not there", describe(), name));
      }
    }
    for (const std::string_view name : kAside) {
      if (file_.empty()) add(std::string(name));
    }
    for (const std::string_view name : kWeights) {
      if (!file_.empty() || !add(std::string(name))) continue;
      if (name.ends_with(".index.json")) {
        for (const std::string& shard : shards_of(client, std::string(name), stop, on_retry)) {
          if (!add(shard)) {
            throw Error(Code::kNotFound,
                        fmt::format("{}/{} names {}, which is not there", describe(), name, shard));
          }
        }
      }
      break;
    }
    if (listing.files.empty()) {
      throw Error(Code::kNotFound,
                  fmt::format("{} has none of the files of a model: config.json, {}; expected the "
                              "address of its folder",
                              describe(), fmt::join(kWeights, ", ")));
    }
    std::string all;
    for (const RemoteFile& file : listing.files) all += file.path + " " + file.blob + "\n";
    listing.commit = sha256_of(all).substr(0, 40);
    return listing;
  }

  HttpRequest request(const RemoteFile& file) const override {
    HttpRequest request;
    request.url = fmt::format("{}/{}", base_, percent_encode(file.path, true));
    return request;
  }

  Error refusal(const HttpReply& reply, const RemoteFile* file) const override {
    const std::string said = fmt::format(
        "{}: {}", file != nullptr ? file->path : shown_url(reply.url), describe_status(reply));
    if (is_worth_another_try(reply.status)) {
      return {Code::kOverloaded, said + "; what was downloaded is kept, try again later"};
    }
    if (reply.status == 404 || reply.status == 410) return {Code::kNotFound, said};
    return {Code::kInvalidArgument, said};
  }

 private:
  std::optional<RemoteFile> look_for(HttpClient& client,
                                     const std::string& path,
                                     std::stop_token stop,
                                     const OnRetry& on_retry) const {
    RemoteFile file;
    file.path = path;
    check_file_name(path);
    HttpRequest head = request(file);
    head.head = true;
    const HttpReply reply = exchange_patiently(client, head, stop, on_retry);
    if (reply.status == 404 || reply.status == 410) return std::nullopt;
    if (!reply.ok()) throw refusal(reply, &file);
    const std::string length = reply.header("content-length");
    const auto parsed = std::from_chars(length.data(), length.data() + length.size(), file.size);
    if (length.empty() || parsed.ec != std::errc() || file.size < 0) {
      throw Error(Code::kUnsupported,
                  fmt::format("{}/{}: the server does not say how large it is (Content-Length)",
                              describe(), path));
    }
    file.etag = reply.header("etag");
    const std::string mark =
        file.etag.empty() ? reply.header("last-modified") : bare_etag(file.etag);
    file.blob = sha256_of(fmt::format("{}\n{}\n{}", request(file).url, file.size, mark));
    file.blob_id = file.blob;
    return file;
  }

  std::set<std::string> shards_of(HttpClient& client,
                                  const std::string& index,
                                  std::stop_token stop,
                                  const OnRetry& on_retry) const {
    RemoteFile file;
    file.path = index;
    const HttpReply reply = exchange_patiently(client, request(file), stop, on_retry);
    if (!reply.ok()) throw refusal(reply, &file);
    Json json;
    try {
      json = parse_json(reply.body);
    } catch (const Error&) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}/{}: expected JSON, got {} bytes of something else", describe(),
                              index, reply.body.size()));
    }
    std::set<std::string> shards;
    for (const auto& [tensor, shard] :
         JsonReader(json, index).object("weight_map").json().items()) {
      if (!shard.is_string()) {
        throw Error(Code::kInvalidArgument,
                    fmt::format("{}: weight_map.{}: expected a file name", index, tensor));
      }
      shards.insert(shard.get<std::string>());
    }
    return shards;
  }

  const std::string base_;
  const std::string file_;  // empty: a whole model
};

}  // namespace

std::unique_ptr<Source> open_https(const std::string& url, const std::string& file) {
  std::string base = url;
  while (base.ends_with('/')) base.pop_back();
  if (origin_of(base).empty() || base.find('?') != std::string::npos ||
      base.find('#') != std::string::npos) {
    throw Error(Code::kInvalidArgument,
                fmt::format("expected the address of a model's folder or of a GGUF file, as "
                            "https://HOST/PATH, got \"{}\"",
                            shown_url(url)));
  }
  const size_t host = base.find("://") + 3;
  if (base.substr(host, base.find('/', host) - host).find('@') != std::string::npos) {
    throw Error(Code::kInvalidArgument,
                "a user's name and password in an address are not accepted: they would stay in the "
                "history of the shell");
  }
  return std::make_unique<HttpsSource>(std::move(base), file);
}

}  // namespace tgi::download
