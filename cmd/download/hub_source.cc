#include "cmd/download/hub_source.h"

#include <fmt/format.h>

#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace tgi::download {
namespace {

constexpr int kMaxPagesOfList = 1000;

// What a server says may be anything, a page of a proxy too; its bytes don't get into messages.
Json parse_answer(const std::string& text, const std::string& where) {
  try {
    return parse_json(text);
  } catch (const Error&) {
    throw Error(
        Code::kInvalidArgument,
        fmt::format("{}: expected JSON, got {} bytes of something else; is this a hub, and no "
                    "proxy in front of it?",
                    where, text.size()));
  }
}

class HubSource final : public Source {
 public:
  HubSource(HubName name, const HubSettings& settings)
      : name_(std::move(name)), settings_(settings) {}

  std::string describe() const override {
    return fmt::format("{} (revision {}) of {}", name_.repo, name_.revision, settings_.endpoint);
  }

  Listing list(HttpClient& client, std::stop_token stop, const OnRetry& on_retry) override {
    const std::string base = fmt::format("{}/api/models/{}", settings_.endpoint, name_.repo);
    const HttpReply about =
        ask(client, fmt::format("{}/revision/{}", base, percent_encode(name_.revision, false)),
            stop, on_retry);
    Listing listing;
    const Json json = parse_answer(about.body, shown_url(about.url));
    listing.commit = JsonReader(json, shown_url(about.url)).string("sha");
    if (!is_commit(listing.commit)) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: sha: expected 40 hexadecimal digits", shown_url(about.url)));
    }
    commit_ = listing.commit;
    std::string url = fmt::format("{}/tree/{}?recursive=true&expand=false", base, listing.commit);
    for (int page = 0; !url.empty(); ++page) {
      if (page == kMaxPagesOfList) {
        throw Error(Code::kInvalidArgument, fmt::format("{}: more than {} pages of files",
                                                        shown_url(url), kMaxPagesOfList));
      }
      const HttpReply tree = ask(client, url, stop, on_retry);
      read_tree_page(tree.body, shown_url(tree.url), listing.files);
      const std::string next = next_page(tree.header("link"));
      const std::string target = next.empty() ? "" : resolve_url(url, next);
      if (!next.empty() && target.empty()) {
        throw Error(Code::kInvalidArgument,
                    fmt::format("{}: can't understand its header Link", shown_url(url)));
      }
      url = target;
    }
    return listing;
  }

  HttpRequest request(const RemoteFile& file) const override {
    HttpRequest request;
    request.url = fmt::format("{}/{}/resolve/{}/{}", settings_.endpoint, name_.repo, commit_,
                              percent_encode(file.path, true));
    request.credentials.bearer = settings_.token;
    return request;
  }

  Error refusal(const HttpReply& reply, const RemoteFile* file) const override;

 private:
  HttpReply ask(HttpClient& client,
                const std::string& url,
                std::stop_token stop,
                const OnRetry& on_retry) const {
    HttpRequest request;
    request.url = url;
    // A next page on another host gets no token.
    if (origin_of(url) == origin_of(settings_.endpoint)) {
      request.credentials.bearer = settings_.token;
    }
    HttpReply reply = exchange_patiently(client, request, stop, on_retry);
    if (!reply.ok()) throw refusal(reply, nullptr);
    return reply;
  }

  std::string model_page() const { return fmt::format("{}/{}", settings_.endpoint, name_.repo); }

  const HubName name_;
  const HubSettings settings_;
  std::string commit_;
};

Error HubSource::refusal(const HttpReply& reply, const RemoteFile* file) const {
  const std::string code = reply.header("x-error-code");
  const std::string said = describe_status(reply);
  const bool has_token = !settings_.token.empty();
  if (origin_of(reply.url) != origin_of(settings_.endpoint) &&
      !is_worth_another_try(reply.status)) {
    return {Code::kUnavailable, fmt::format("{}: the storage the hub leads to refused it: {}",
                                            file != nullptr ? file->path : name_.repo, said)};
  }
  const std::string token =
      has_token ? fmt::format("the token of {}", settings_.token_from) : std::string("no token");
  if (code == "GatedRepo") {
    return {Code::kInvalidArgument,
            has_token
                ? fmt::format("{} is gated and {} has no access to it; ask for access on {} "
                              "with the account of that token, then run this again",
                              name_.repo, token, model_page())
                : fmt::format("{} is gated; accept its conditions on {}, then give a token of "
                              "that account in HF_TOKEN (made at {}/settings/tokens)",
                              name_.repo, model_page(), settings_.endpoint)};
  }
  if (code == "DisabledRepo" ||
      reply.header("x-error-message").starts_with("Access to this resource is disabled")) {
    return {Code::kNotFound, fmt::format("{} was disabled on {}", name_.repo, settings_.endpoint)};
  }
  if (code == "RevisionNotFound") {
    return {Code::kNotFound, fmt::format("{} has no revision {}; its branches and tags are on "
                                         "{}/tree/main",
                                         name_.repo, name_.revision, model_page())};
  }
  if (code == "EntryNotFound" || (reply.status == 404 && file != nullptr)) {
    return {Code::kNotFound, fmt::format("{}: the list of files has it, but {}",
                                         file != nullptr ? file->path : "a file", said)};
  }
  if (reply.status == 401 && has_token && code != "RepoNotFound") {
    return {
        Code::kInvalidArgument,
        fmt::format("{} was refused ({}); make another at {}/settings/tokens, or unset it: most "
                    "models need none",
                    token, said, settings_.endpoint)};
  }
  // The hub does not tell a model that is not there from one that must not be seen.
  if (code == "RepoNotFound" || reply.status == 401 || reply.status == 404) {
    return {
        Code::kNotFound,
        fmt::format("there is no model {} on {}, or it is private; check its name{}", name_.repo,
                    settings_.endpoint,
                    has_token ? fmt::format(", and that {} may read it", token)
                              : std::string(", and give a token in HF_TOKEN if it is private"))};
  }
  if (reply.status == 403) {
    return {Code::kInvalidArgument,
            fmt::format("{}: {} may not read it ({}); give a token that may in HF_TOKEN",
                        name_.repo, token, said)};
  }
  if (is_worth_another_try(reply.status)) {
    return {Code::kOverloaded,
            fmt::format(
                "{} after {} tries; run the same command again later, what was downloaded is "
                "kept{}",
                said, kMaxTries,
                reply.status == 429 && !has_token ? "; a token in HF_TOKEN raises the limit" : "")};
  }
  return {Code::kUnavailable,
          fmt::format("{}{}", file != nullptr ? file->path + ": " : std::string(), said)};
}

bool is_hex(const std::string& text, size_t size) {
  return text.size() == size && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

std::unique_ptr<Source> open_hub(HubName name, const HubSettings& settings) {
  return std::make_unique<HubSource>(std::move(name), settings);
}

void read_tree_page(const std::string& text,
                    const std::string& where,
                    std::vector<RemoteFile>& files) {
  const Json json = parse_answer(text, where);
  if (!json.is_array()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: expected an array of files, got {}; is this a hub?", where,
                            json.type_name()));
  }
  for (const Json& entry : json) {
    const JsonReader reader(entry, where);
    if (reader.string("type") != "file") continue;
    RemoteFile file;
    file.path = reader.string("path");
    check_file_name(file.path);
    file.size = reader.integer("size");
    file.xet_hash = reader.string_or("xetHash", "");
    file.blob_id = reader.string("oid");
    if (reader.has("lfs")) {
      const JsonReader lfs = reader.object("lfs");
      file.sha256 = lfs.string("oid");
      file.size = lfs.integer("size");
      file.blob = file.sha256;
    } else {
      file.git_sha1 = file.blob_id;
      file.blob = file.git_sha1;
    }
    if (file.size < 0 || !(is_hex(file.sha256, 64) || is_hex(file.git_sha1, 40))) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: {}: expected a size and a hash, got {} and \"{}\"", where,
                              file.path, file.size, file.blob));
    }
    files.push_back(std::move(file));
  }
}

std::string next_page(const std::string& link) {
  for (size_t at = 0; at < link.size();) {
    const size_t open = link.find('<', at);
    const size_t close = link.find('>', open);
    if (open == std::string::npos || close == std::string::npos) return "";
    const size_t end = std::min(link.find(",", close), link.size());
    if (link.substr(close, end - close).find("rel=\"next\"") != std::string::npos) {
      return link.substr(open + 1, close - open - 1);
    }
    at = end + 1;
  }
  return "";
}

std::string bare_etag(const std::string& etag) {
  const size_t begin = etag.find('"');
  const size_t end = etag.rfind('"');
  if (begin == std::string::npos || end <= begin) return etag;
  return etag.substr(begin + 1, end - begin - 1);
}

void check_promises(const RemoteFile& file, const HttpReply& reply) {
  const std::string etag = bare_etag(reply.first_header("x-linked-etag"));
  const std::string size = reply.first_header("x-linked-size");
  const bool other_content = !etag.empty() && !file.blob.empty() && etag != file.blob;
  const bool other_size = !size.empty() && size != fmt::format("{}", file.size);
  if (!other_content && !other_size) return;
  throw Error(Code::kUnavailable,
              fmt::format("{} changed on the server while it was downloaded: listed were {} bytes "
                          "with hash {}, now it has {} with {}; run the same command again",
                          file.path, file.size, file.blob, size.empty() ? "?" : size,
                          etag.empty() ? "?" : etag));
}

}  // namespace tgi::download
