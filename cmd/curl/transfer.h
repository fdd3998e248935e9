// A request over HTTP and its answer, by libcurl. This room is the only one that includes libcurl's
// headers; nothing is retried, followed or decided here. One thread per object.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tgi::curl {

enum class HttpVersion {
  kOfLibcurl,  // what libcurl takes by itself
  k1_1,
  k2OverTls,  // 1.1 without TLS
};

// Signs a request for an S3 store.
struct AwsSignature {
  std::string key;
  std::string secret;
  std::string region;
};

struct Settings {
  std::string url;  // http or https
  bool head = false;
  // "Name: value"; "Name:" leaves out one that libcurl would send.
  std::vector<std::string> headers;
  std::string user_agent;  // empty: none
  HttpVersion version = HttpVersion::kOfLibcurl;
  std::optional<AwsSignature> aws;
  bool use_proxy = false;  // as the usual variables say
  std::string ca_file;     // empty: the system's
  bool check_certificate = true;
  std::chrono::milliseconds connect_timeout{0};  // 0: libcurl's own
  std::chrono::milliseconds timeout{0};          // of the whole; 0: none
  long receive_buffer_bytes = 0;                 // 0: libcurl's own
  bool keep_addresses = false;                   // a name that was looked up stays known for ever
  bool leave_lookups = false;                    // an unfinished name look-up delays no exit
  // What of the receiver is called; the body always is.
  bool tell_headers = false;
  bool ask_keep_going = false;
};

// Gets what comes. Called while the transfer is driven, on that thread. What it throws breaks the
// transfer off and is thrown where the transfer ends.
class Receiver {
 public:
  virtual ~Receiver() = default;

  // False breaks the transfer off.
  virtual bool on_body(std::string_view bytes) = 0;
  // A line of the head with its line end; the status line too, and those of answers before the
  // last.
  virtual void on_header(std::string_view /*line*/) {}
  // Asked about once a second, and more often while bytes come. False breaks the transfer off.
  virtual bool keep_going() { return true; }
};

enum class Failure {
  kNone,
  kUnknownHost,
  kUnknownProxy,
  kCannotConnect,
  kTimeout,
  kNotTrusted,  // the server's certificate
  kTls,         // what else can go wrong with TLS
  kConnectionLost,
  kBadUrl,
  kStopped,  // by keep_going()
  kOther,    // by on_body() too
};

// How a transfer ended. Any status is a success.
struct Outcome {
  Failure failure = Failure::kNone;
  std::string reason;  // in libcurl's words for the kind of failure
  std::string detail;  // and for this one; the reason, where there are none

  bool ok() const { return failure == Failure::kNone; }
};

struct TransferState;

class Transfer {
 public:
  Transfer();
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // What was set before is forgotten, a body too; the connection is kept. `receiver` must outlive
  // the transfer.
  void prepare(const Settings& settings, Receiver& receiver);

  // Posts `body`, which is copied, from the next time on.
  void set_body(std::string_view body);

  // Waits until it ended. Throws what the receiver threw.
  Outcome perform();

  int status() const;                        // of the answer so far; 0: none yet
  std::chrono::seconds retry_after() const;  // that the last answer asked for; 0: it didn't

 private:
  friend class LoneTransfer;
  friend class TransferGroup;

  const std::unique_ptr<TransferState> state_;
};

}  // namespace tgi::curl
