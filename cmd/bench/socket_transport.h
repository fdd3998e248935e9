// Load over the daemon's own socket: what ipc::Client does, for many requests on one thread.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cmd/bench/poller.h"
#include "cmd/bench/transport.h"
#include "ipc/line_socket.h"
#include "ipc/protocol.h"

namespace tgi::bench {

struct SocketTarget {
  std::string socket_path;
  int64_t vocab_size = 0;
  bool use_prefix_cache = true;
  ipc::GenerateParams sampling;  // max_new_tokens, ignore_eos and use_prefix_cache are set here
};

// `error_kind` of its records is the name of a Code.
class SocketTransport final : public Transport {
 public:
  SocketTransport(SocketTarget target, int cancel_fd);
  ~SocketTransport() override;

  void begin() override { begin_ = BenchClock::now(); }
  void start(const PlannedRequest& request, RequestRecord& record) override;
  std::vector<RequestRecord*> wait(BenchClock::time_point until) override;
  bool interrupted() const override { return poller_.interrupted(); }
  void cancel_all() override;

 private:
  struct Stream;

  double now_s() const { return std::chrono::duration<double>(BenchClock::now() - begin_).count(); }
  void connect(std::unique_ptr<Stream> stream);
  void retry_waiting();
  void serve(Stream& stream);
  void write_some(Stream& stream);
  bool take_line(Stream& stream, const std::string& line, double when_s);
  void finish(Stream& stream);
  void fail(Stream& stream, const Error& error);

  const SocketTarget target_;
  Poller poller_;
  BenchClock::time_point begin_ = BenchClock::now();
  std::map<int, std::unique_ptr<Stream>> streams_;  // by file descriptor
  std::deque<std::unique_ptr<Stream>> waiting_;     // for a place in the listener's queue
  std::vector<RequestRecord*> finished_;
};

}  // namespace tgi::bench
