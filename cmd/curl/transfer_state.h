// libcurl's side of a transfer, for the sources of this room.
#pragma once

#include <curl/curl.h>

#include <array>
#include <exception>
#include <memory>

#include "cmd/curl/transfer.h"

namespace tgi::curl {

void init_libcurl();  // once a process; more does no harm

struct EasyDeleter {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct MultiDeleter {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
struct ListDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

// libcurl calls back into it; nothing may be thrown through libcurl.
struct TransferState {
  std::unique_ptr<curl_slist, ListDeleter> headers;
  std::array<char, CURL_ERROR_SIZE> why{};
  Receiver* receiver = nullptr;
  std::exception_ptr thrown;
  std::unique_ptr<CURL, EasyDeleter> easy;  // goes first: it uses the others

  // Throws what the receiver threw.
  Outcome outcome_of(CURLcode result);
};

}  // namespace tgi::curl
