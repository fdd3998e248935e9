// One worker's part of a transfer: brings the chunks of a span to the disk over one connection,
// from the byte where an answer broke off, and tells the file of each that is complete.
#pragma once

#include <functional>
#include <stop_token>

#include "cmd/download/file_work.h"
#include "cmd/download/http_client.h"
#include "cmd/download/source.h"
#include "cmd/download/transfer.h"

namespace tgi::download {

struct FetchContext {
  const Source& source;
  HttpClient& client;  // of this thread
  Observer& observer;
  std::function<void()> on_chunk;  // wakes the checker
};

// Returns when the span is there, or when the server turned out to send no ranges: the rest is
// given back then. Throws what ends the transfer.
void fetch_span(FileWork& work, Span span, const FetchContext& context, std::stop_token stop);

}  // namespace tgi::download
