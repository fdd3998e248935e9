#include "cmd/curl/transfer.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "cmd/curl/transfer_state.h"

namespace tgi::curl {
namespace {

Failure failure_of(CURLcode result) {
  switch (result) {
    case CURLE_OK:
      return Failure::kNone;
    case CURLE_COULDNT_RESOLVE_HOST:
      return Failure::kUnknownHost;
    case CURLE_COULDNT_RESOLVE_PROXY:
      return Failure::kUnknownProxy;
    case CURLE_COULDNT_CONNECT:
      return Failure::kCannotConnect;
    case CURLE_OPERATION_TIMEDOUT:
      return Failure::kTimeout;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
      return Failure::kNotTrusted;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
      return Failure::kTls;
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
      return Failure::kConnectionLost;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return Failure::kBadUrl;
    case CURLE_ABORTED_BY_CALLBACK:
      return Failure::kStopped;
    default:
      return Failure::kOther;
  }
}

// Calls the receiver; `broken` when it throws.
template <typename Call, typename Result>
Result guarded(void* state, Result broken, const Call& call) {
  TransferState& of = *static_cast<TransferState*>(state);
  try {
    return call(*of.receiver);
  } catch (...) {
    of.thrown = std::current_exception();
    return broken;
  }
}

// A return of fewer bytes than it got breaks the transfer off; so in the one below.
size_t on_body(char* bytes, size_t size, size_t count, void* state) {
  const std::string_view text(bytes, size * count);
  return guarded(state, size_t{0}, [&](Receiver& receiver) {
    return receiver.on_body(text) ? text.size() : size_t{0};
  });
}

size_t on_header(char* bytes, size_t size, size_t count, void* state) {
  const std::string_view line(bytes, size * count);
  return guarded(state, size_t{0}, [&](Receiver& receiver) {
    receiver.on_header(line);
    return line.size();
  });
}

int on_progress(void* state, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return guarded(state, 1, [](Receiver& receiver) { return receiver.keep_going() ? 0 : 1; });
}

template <typename Value>
void set(CURL* easy, CURLoption option, Value value) {
  TGI_CHECK(curl_easy_setopt(easy, option, value) == CURLE_OK);
}

long libcurl_version(HttpVersion version) {
  return version == HttpVersion::k2OverTls ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1;
}

void set_headers(TransferState& state, const std::vector<std::string>& lines) {
  state.headers.reset();
  for (const std::string& line : lines) {
    curl_slist* longer = curl_slist_append(state.headers.get(), line.c_str());
    TGI_CHECK(longer != nullptr);
    (void)state.headers.release();
    state.headers.reset(longer);
  }
  if (state.headers) set(state.easy.get(), CURLOPT_HTTPHEADER, state.headers.get());
}

void set_security(CURL* easy, const Settings& settings) {
  if (!settings.ca_file.empty()) set(easy, CURLOPT_CAINFO, settings.ca_file.c_str());
  if (!settings.check_certificate) {
    set(easy, CURLOPT_SSL_VERIFYPEER, 0L);
    set(easy, CURLOPT_SSL_VERIFYHOST, 0L);
  }
  if (settings.aws) {
    set(easy, CURLOPT_AWS_SIGV4, fmt::format("aws:amz:{}:s3", settings.aws->region).c_str());
    set(easy, CURLOPT_USERPWD,
        fmt::format("{}:{}", settings.aws->key, settings.aws->secret).c_str());
  }
}

void set_callbacks(TransferState& state, const Settings& settings) {
  CURL* easy = state.easy.get();
  set(easy, CURLOPT_WRITEFUNCTION, &on_body);
  set(easy, CURLOPT_WRITEDATA, static_cast<void*>(&state));
  if (settings.tell_headers) {
    set(easy, CURLOPT_HEADERFUNCTION, &on_header);
    set(easy, CURLOPT_HEADERDATA, static_cast<void*>(&state));
  }
  if (settings.ask_keep_going) {
    set(easy, CURLOPT_NOPROGRESS, 0L);
    set(easy, CURLOPT_XFERINFOFUNCTION, &on_progress);
    set(easy, CURLOPT_XFERINFODATA, static_cast<void*>(&state));
  }
}

}  // namespace

void init_libcurl() {
  static const CURLcode result = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (result != CURLE_OK) throw Error(Code::kInternal, curl_easy_strerror(result));
}

Outcome TransferState::outcome_of(CURLcode result) {
  if (thrown) std::rethrow_exception(std::exchange(thrown, nullptr));
  if (result == CURLE_OK) return {};
  const char* reason = curl_easy_strerror(result);
  return {.failure = failure_of(result),
          .reason = reason,
          .detail = why[0] != '\0' ? why.data() : reason};
}

Transfer::Transfer() : state_(std::make_unique<TransferState>()) {
  init_libcurl();
  state_->easy.reset(curl_easy_init());
  TGI_CHECK(state_->easy != nullptr);
}

Transfer::~Transfer() = default;

void Transfer::prepare(const Settings& settings, Receiver& receiver) {
  TransferState& state = *state_;
  CURL* easy = state.easy.get();
  curl_easy_reset(easy);  // keeps the connection
  state.receiver = &receiver;
  state.thrown = nullptr;
  state.why[0] = '\0';
  set(easy, CURLOPT_ERRORBUFFER, state.why.data());
  set(easy, CURLOPT_URL, settings.url.c_str());
  set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  set(easy, CURLOPT_NOSIGNAL, 1L);
  set(easy, CURLOPT_TCP_NODELAY, 1L);
  set(easy, CURLOPT_NOBODY, settings.head ? 1L : 0L);
  if (!settings.use_proxy) set(easy, CURLOPT_PROXY, "");
  if (settings.version != HttpVersion::kOfLibcurl) {
    // A wish: a libcurl without HTTP/2 refuses it and speaks 1.1.
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, libcurl_version(settings.version));
  }
  if (!settings.user_agent.empty()) set(easy, CURLOPT_USERAGENT, settings.user_agent.c_str());
  if (settings.receive_buffer_bytes > 0) {
    // Refused where there is a buffer from the time before: that one stays.
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, settings.receive_buffer_bytes);
  }
  if (settings.connect_timeout.count() > 0) {
    set(easy, CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(settings.connect_timeout.count()));
  }
  if (settings.timeout.count() > 0) {
    set(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(settings.timeout.count()));
  }
  if (settings.keep_addresses) set(easy, CURLOPT_DNS_CACHE_TIMEOUT, -1L);
  if (settings.leave_lookups) set(easy, CURLOPT_QUICK_EXIT, 1L);
  set_headers(state, settings.headers);
  set_security(easy, settings);
  set_callbacks(state, settings);
}

void Transfer::set_body(std::string_view body) {
  CURL* easy = state_->easy.get();
  set(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  set(easy, CURLOPT_COPYPOSTFIELDS, body.data());
}

Outcome Transfer::perform() {
  return state_->outcome_of(curl_easy_perform(state_->easy.get()));
}

int Transfer::status() const {
  long status = 0;
  curl_easy_getinfo(state_->easy.get(), CURLINFO_RESPONSE_CODE, &status);
  return static_cast<int>(status);
}

std::chrono::seconds Transfer::retry_after() const {
  curl_off_t seconds = 0;
  curl_easy_getinfo(state_->easy.get(), CURLINFO_RETRY_AFTER, &seconds);
  return std::chrono::seconds(seconds);
}

}  // namespace tgi::curl
