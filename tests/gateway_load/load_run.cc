#include "tests/gateway_load/load_run.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "ipc/line_socket.h"
#include "tests/gateway_load/stamp.h"

namespace tgi {
namespace {

constexpr size_t kReadBytes = size_t{64} << 10;
constexpr int64_t kGraceNs = 60'000'000'000;  // beyond the time that the pace takes

struct Stream {
  UniqueFd fd;
  ReplyReader reader;
};

int64_t own_cpu_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

UniqueFd connect_socket(const std::string& path) {
  for (;;) {
    try {
      return ipc::connect_unix(path);
    } catch (const Error& error) {
      if (error.code() != Code::kOverloaded) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

UniqueFd connect_http(uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw Error(Code::kUnavailable, fmt::format("connect: {}", std::strerror(errno)));
  }
  const int on = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
  return fd;
}

std::string request_bytes(Way way, size_t stream, size_t num_tokens) {
  if (way == Way::kSocket) {
    ipc::GenerateRequest request;
    request.prompt = std::to_string(stream);
    request.stream = true;
    request.params.max_new_tokens = static_cast<int64_t>(num_tokens);
    return ipc::encode_request(ipc::kGenerate, ipc::to_json(request)) + "\n";
  }
  const bool chat = way == Way::kChat;
  const std::string body =
      chat ? fmt::format(R"({{"messages":[{{"role":"user","content":"{}"}}],"stream":true,)"
                         R"("max_tokens":{}}})",
                         stream, num_tokens)
           : fmt::format(R"({{"inputs":"{}","parameters":{{"max_new_tokens":{}}}}})", stream,
                         num_tokens);
  return fmt::format(
      "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: {}\r\n\r\n{}",
      chat ? "/v1/chat/completions" : "/generate_stream", body.size(), body);
}

void send_request(const UniqueFd& fd, std::string_view bytes) {
  // A fresh socket has room for so little.
  if (ipc::write_from(fd.get(), bytes) != ipc::WriteStatus::kDone) {
    throw Error(Code::kUnavailable, "a request could not be sent");
  }
}

// Reads what is there. False: the stream has ended, well or badly.
bool read_stream(Stream& stream, std::vector<int64_t>& latencies_ns) {
  static thread_local std::array<char, kReadBytes> buffer;
  const ssize_t count = ::recv(stream.fd.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (count <= 0) {
    stream.reader.on_closed();
    return false;
  }
  stream.reader.feed({buffer.data(), static_cast<size_t>(count)}, monotonic_ns(), latencies_ns);
  return !stream.reader.is_done();
}

void read_all(std::vector<Stream>& streams,
              const UniqueFd& epoll,
              int64_t deadline_ns,
              std::vector<int64_t>& latencies_ns) {
  size_t num_open = streams.size();
  std::array<epoll_event, 256> events;
  while (num_open > 0) {
    const int count = ::epoll_wait(epoll.get(), events.data(), events.size(), 1000);
    for (int i = 0; i < count; ++i) {
      Stream& stream = streams[events[static_cast<size_t>(i)].data.u64];
      if (read_stream(stream, latencies_ns)) continue;
      stream.fd.reset();
      --num_open;
    }
    if (monotonic_ns() > deadline_ns) {
      throw Error(Code::kUnavailable,
                  fmt::format("{} of {} streams have not ended in time", num_open, streams.size()));
    }
  }
}

}  // namespace

double percentile_ms(const std::vector<int64_t>& latencies_ns, double percent) {
  const auto count = static_cast<double>(latencies_ns.size());
  const auto rank = static_cast<size_t>(std::max(1.0, std::ceil(count * percent / 100)));
  return static_cast<double>(latencies_ns[rank - 1]) / 1e6;
}

LoadResult run_load(const LoadCase& load,
                    Way way,
                    StandInDaemon& daemon,
                    const std::string& socket_path,
                    const GatewayProcess& gateway) {
  // Written by the daemon's thread before the first token, read here after the last.
  struct Begin {
    std::atomic<int64_t> at_ns, gateway_ns, own_ns;
  } begin;
  daemon.set_pace(load.pace, [&begin, &gateway] {
    begin.gateway_ns = gateway.cpu_ns();
    begin.own_ns = own_cpu_ns();
    begin.at_ns = monotonic_ns();
  });
  const UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  std::vector<Stream> streams;
  streams.reserve(load.pace.num_streams);
  for (size_t i = 0; i < load.pace.num_streams; ++i) {
    UniqueFd fd = way == Way::kSocket ? connect_socket(socket_path) : connect_http(gateway.port());
    epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
    ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd.get(), &event);
    send_request(fd, request_bytes(way, i, load.num_tokens));
    streams.push_back({std::move(fd), ReplyReader(way, i, load.num_tokens)});
  }
  LoadResult result;
  result.latencies_ns.reserve(load.pace.num_streams * load.num_tokens);
  const double paced_s = load.pace.tokens_per_s > 0
                             ? static_cast<double>(load.num_tokens) / load.pace.tokens_per_s
                             : 60;
  read_all(streams, epoll, monotonic_ns() + std::llround(paced_s * 1e9) + kGraceNs,
           result.latencies_ns);
  result.wall_s = static_cast<double>(monotonic_ns() - begin.at_ns) / 1e9;
  result.gateway_cpu_ns = gateway.cpu_ns() - begin.gateway_ns;
  result.bench_cpu_ns = own_cpu_ns() - begin.own_ns;
  for (const Stream& stream : streams) {
    result.num_tokens += stream.reader.num_received();
    if (stream.reader.problem().empty()) continue;
    ++result.num_broken;
    if (result.first_problem.empty()) result.first_problem = stream.reader.problem();
  }
  std::sort(result.latencies_ns.begin(), result.latencies_ns.end());
  return result;
}

}  // namespace tgi
