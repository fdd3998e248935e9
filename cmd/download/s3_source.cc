#include "cmd/download/s3_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <stop_token>

#include "cmd/download/content_hash.h"
#include "cmd/download/hub_names.h"

namespace tgi::download {
namespace {

constexpr int kMaxPagesOfBucket = 1000;

std::string first_of(const Variables& variables, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto value = variables(name);
    if (value && !value->empty()) return *value;
  }
  return "";
}

std::string unescape(std::string_view text) {
  struct Entity {
    std::string_view name;
    char c;
  };
  constexpr std::array kEntities = {
      Entity{"&amp;", '&'},   Entity{"&lt;", '<'},  Entity{"&gt;", '>'},  Entity{"&quot;", '"'},
      Entity{"&apos;", '\''}, Entity{"&#34;", '"'}, Entity{"&#39;", '\''}};
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const auto* const entity =
        std::find_if(kEntities.begin(), kEntities.end(),
                     [&](const Entity& e) { return text.substr(at).starts_with(e.name); });
    out += entity != kEntities.end() ? entity->c : text[at];
    at += entity != kEntities.end() ? entity->name.size() : 1;
  }
  return out;
}

// What is between <NAME> and </NAME>, from `at` on; moves `at` behind it. Nothing when there is
// none.
std::optional<std::string_view> next_element(std::string_view xml,
                                             std::string_view name,
                                             size_t& at) {
  const std::string open = fmt::format("<{}>", name);
  const std::string close = fmt::format("</{}>", name);
  const size_t begin = xml.find(open, at);
  if (begin == std::string_view::npos) return std::nullopt;
  const size_t end = xml.find(close, begin);
  if (end == std::string_view::npos) return std::nullopt;
  at = end + close.size();
  return xml.substr(begin + open.size(), end - begin - open.size());
}

std::string element(std::string_view xml, std::string_view name) {
  size_t at = 0;
  const auto found = next_element(xml, name, at);
  return found ? unescape(*found) : "";
}

bool is_md5(const std::string& text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

class S3Source final : public Source {
 public:
  S3Source(std::string bucket, std::string prefix, Credentials who, const std::string& endpoint)
      : bucket_(std::move(bucket)), prefix_(std::move(prefix)), who_(std::move(who)) {
    // Buckets with dots have no certificate as a host name, and other stores may know no such
    // hosts.
    base_ = endpoint.empty() && bucket_.find('.') == std::string::npos
                ? fmt::format("https://{}.s3.{}.amazonaws.com", bucket_, who_.aws_region)
            : endpoint.empty()
                ? fmt::format("https://s3.{}.amazonaws.com/{}", who_.aws_region, bucket_)
                : fmt::format("{}/{}", endpoint, bucket_);
  }

  std::string describe() const override { return fmt::format("s3://{}/{}", bucket_, prefix_); }

  Listing list(HttpClient& client, std::stop_token stop, const OnRetry& on_retry) override {
    Listing listing;
    std::string token;
    for (int page = 0; page == 0 || !token.empty(); ++page) {
      if (page == kMaxPagesOfBucket) {
        throw Error(Code::kInvalidArgument, fmt::format("{}: too many files", describe()));
      }
      HttpRequest request;
      request.credentials = who_;
      // In the order of their names, as the signature wants them.
      request.url = fmt::format(
          "{}/?{}list-type=2&prefix={}", base_,
          token.empty() ? "" : fmt::format("continuation-token={}&", percent_encode(token, false)),
          percent_encode(prefix_, false));
      const HttpReply reply = exchange_patiently(client, request, stop, on_retry);
      if (!reply.ok()) throw refusal(reply, nullptr);
      token = read_s3_page(reply.body, prefix_, listing.files);
    }
    if (listing.files.empty()) {
      throw Error(Code::kNotFound, fmt::format("{} has no files", describe()));
    }
    std::string all;
    for (const RemoteFile& file : listing.files) all += file.path + " " + file.blob + "\n";
    listing.commit = sha256_of(all).substr(0, 40);
    return listing;
  }

  HttpRequest request(const RemoteFile& file) const override {
    HttpRequest request;
    request.url = fmt::format("{}/{}", base_, percent_encode(prefix_ + file.path, true));
    request.credentials = who_;
    return request;
  }

  Error refusal(const HttpReply& reply, const RemoteFile* file) const override {
    const std::string code = element(reply.body, "Code");
    const std::string what =
        fmt::format("{}{}{}: the store answered {}{}{}", describe(), file != nullptr ? " " : "",
                    file != nullptr ? file->path : "", reply.status, code.empty() ? "" : " ", code);
    if (is_worth_another_try(reply.status)) {
      return {Code::kOverloaded, what + "; what was downloaded is kept, try again later"};
    }
    if (reply.status == 404) return {Code::kNotFound, what};
    if (reply.status == 401 || reply.status == 403) {
      return {
          Code::kInvalidArgument,
          fmt::format("{}; check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN and "
                      "AWS_REGION ({})",
                      what, who_.aws_region)};
    }
    return {Code::kInvalidArgument, what};
  }

 private:
  const std::string bucket_;
  const std::string prefix_;  // empty, or with a slash at its end
  const Credentials who_;
  std::string base_;
};

}  // namespace

std::string read_s3_page(const std::string& xml,
                         const std::string& prefix,
                         std::vector<RemoteFile>& files) {
  if (xml.find("<ListBucketResult") == std::string::npos) {
    throw Error(Code::kInvalidArgument,
                "expected a list of the bucket's files (ListBucketResult); is this an S3 store?");
  }
  for (size_t at = 0; const auto object = next_element(xml, "Contents", at);) {
    const std::string key = element(*object, "Key");
    if (!key.starts_with(prefix) || key.size() == prefix.size() || key.ends_with('/')) continue;
    RemoteFile file;
    file.path = key.substr(prefix.size());
    check_file_name(file.path);
    const std::string size = element(*object, "Size");
    const auto parsed = std::from_chars(size.data(), size.data() + size.size(), file.size);
    if (size.empty() || parsed.ec != std::errc() || file.size < 0) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("{}: expected a size, got \"{}\"", file.path, size));
    }
    file.etag = element(*object, "ETag");
    // For an object that was uploaded in one piece it is the md5; for parts, something with a dash.
    if (is_md5(bare_etag(file.etag))) file.md5 = bare_etag(file.etag);
    file.blob = sha256_of(fmt::format("{}\n{}\n{}", key, file.size, file.etag));
    file.blob_id = file.blob;
    files.push_back(std::move(file));
  }
  return element(xml, "IsTruncated") == "true" ? element(xml, "NextContinuationToken") : "";
}

std::unique_ptr<Source> open_s3(const std::string& url, const Variables& variables) {
  constexpr std::string_view kScheme = "s3://";
  const std::string rest = url.substr(std::min(kScheme.size(), url.size()));
  const std::string bucket = rest.substr(0, rest.find('/'));
  std::string prefix = bucket.size() < rest.size() ? rest.substr(bucket.size() + 1) : "";
  while (prefix.ends_with('/')) prefix.pop_back();
  if (!prefix.empty()) prefix += '/';
  const bool plain =
      bucket.find_first_not_of(
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") == std::string::npos;
  if (bucket.size() < 3 || !plain) {
    throw Error(Code::kInvalidArgument,
                fmt::format("expected s3://BUCKET/PREFIX, got \"{}\"", url));
  }
  Credentials who;
  who.aws_key = first_of(variables, {"AWS_ACCESS_KEY_ID"});
  who.aws_secret = first_of(variables, {"AWS_SECRET_ACCESS_KEY"});
  who.aws_session = first_of(variables, {"AWS_SESSION_TOKEN"});
  who.aws_region = first_of(variables, {"AWS_REGION", "AWS_DEFAULT_REGION"});
  if (who.aws_region.empty()) who.aws_region = "us-east-1";
  if (who.aws_key.empty() != who.aws_secret.empty()) {
    throw Error(Code::kInvalidArgument,
                "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY go together; set both or none");
  }
  std::string endpoint =
      first_of(variables, {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "S3_ENDPOINT_URL"});
  while (endpoint.ends_with('/')) endpoint.pop_back();
  return std::make_unique<S3Source>(bucket, prefix, std::move(who), endpoint);
}

}  // namespace tgi::download
