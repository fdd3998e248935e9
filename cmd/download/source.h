// Where the files of a model come from: what there is, with sizes and hashes, and how each is asked
// for. One file per kind: hub_source, https_source, s3_source, folder_source. A source is made and
// used by the main thread, but request() and refusal() may be called by any.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "cmd/download/http_client.h"
#include "cmd/download/retry.h"

namespace tgi::download {

struct RemoteFile {
  std::string path;  // below the model's folder; checked by check_file_name
  int64_t size = -1;
  std::string blob;      // its name in the cache, one for each content
  std::string sha256;    // of the content, 64 digits; empty: not known
  std::string git_sha1;  // git's hash of the content, 40 digits; empty: not known
  std::string md5;       // of the content, 32 digits; empty: not known
  std::string etag;     // that every answer for this file has to have; empty: any, but all the same
  std::string blob_id;  // these two are only passed on to the list of files in the cache
  std::string xet_hash;
};

struct Listing {
  std::string commit;  // 40 digits: the same commit, the same files
  std::vector<RemoteFile> files;
};

class Source {
 public:
  virtual ~Source() = default;

  // For people: "meta-llama/Llama-3.2-1B (revision main) of https://huggingface.co".
  virtual std::string describe() const = 0;

  // Throws what refusal() gives, NetworkError, and kInvalidArgument for what can't be understood.
  virtual Listing list(HttpClient& client, std::stop_token stop, const OnRetry& on_retry) = 0;

  // How a file is asked for. The transfer adds ranges.
  virtual HttpRequest request(const RemoteFile& file) const = 0;

  // An answer that is none, in the user's terms and with what to do. `file` may be null.
  virtual Error refusal(const HttpReply& reply, const RemoteFile* file) const = 0;
};

// "3 B of model.safetensors": throws kInvalidArgument when what the list promised and what the
// answer says (X-Linked-Etag, X-Linked-Size, X-Repo-Commit of the hub) differ. (Nothing for
// others.)
void check_promises(const RemoteFile& file, const HttpReply& reply);

// The part of an ETag between its quotes, without W/.
std::string bare_etag(const std::string& etag);

}  // namespace tgi::download
