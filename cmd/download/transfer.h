// Brings files to the disk: several connections at once, each with a part of a file that it alone
// restarts, and one thread that reads back and hashes what has come, close behind. A file gets its
// name only when its hash is right. Files that another process downloads are left to it, and looked
// at again until they are there or free.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "cmd/download/file_work.h"
#include "cmd/download/http_client.h"
#include "cmd/download/source.h"

namespace tgi::download {

struct TransferSettings {
  HttpSettings http;
  int num_connections = 8;
};

// Told by any thread what happens; never two calls at once for one file, but several files at once.
class Observer {
 public:
  virtual ~Observer() = default;
  // `kept` bytes are there from an earlier run.
  virtual void on_begin(size_t file, int64_t kept) = 0;
  virtual void on_bytes(size_t file, int64_t bytes) = 0;  // negative: they have to come again
  virtual void on_done(size_t file, bool by_others) = 0;
  virtual void on_wait_for_others(size_t file) = 0;
  virtual void on_note(const std::string& text) = 0;  // a retry, a second look
};

// Works until all files are in their places. Throws the first error that ends it; what was
// downloaded is kept.
void transfer(const Source& source,
              std::vector<TransferItem> items,
              const TransferSettings& settings,
              Observer& observer,
              std::stop_token stop);

}  // namespace tgi::download
