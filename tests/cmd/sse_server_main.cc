// sse_server TOKENS TOKENS_PER_SECOND [PORT]: answers every POST with so many OpenAI chat chunks at
// that rate a stream (0: as fast as the client takes them). For scripts/bench/bench_client_cost.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/cmd/sse_server.h"

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: sse_server TOKENS TOKENS_PER_SECOND [PORT]\n");
    return 2;
  }
  std::signal(SIGPIPE, SIG_IGN);
  const size_t num_tokens = std::strtoul(argv[1], nullptr, 10);
  const double rate = std::strtod(argv[2], nullptr);
  // The size and shape that `tgi serve` and vLLM send.
  const std::string event =
      "data: {\"id\":\"chatcmpl-0123456789abcdef0123456789abcdef\",\"object\":"
      "\"chat.completion.chunk\",\"created\":1732147200,\"model\":\"demo\",\"system_fingerprint\":"
      "\"0.1.0\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\" "
      "word\"},"
      "\"logprobs\":null,\"finish_reason\":null}],\"usage\":null}\n\n";
  const std::string last =
      "data: {\"id\":\"chatcmpl-0\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,"
      "\"delta\":{},\"finish_reason\":\"length\"}],\"usage\":null}\n\n";
  const std::string usage =
      "{\"prompt_tokens\":64,\"completion_tokens\":" + std::to_string(num_tokens) + "}";
  const std::string end = "data: {\"choices\":[],\"usage\":" + usage + "}\n\ndata: [DONE]\n\n";
  const auto gap = std::chrono::nanoseconds(rate > 0 ? static_cast<int64_t>(1e9 / rate) : 0);
  tgi::SseServer server(
      [&](const tgi::SseRequest& request) {
        tgi::SseReply reply;
        if (request.method != "POST") {
          reply.status = 404;
          return reply;
        }
        reply.repeated = event;
        reply.num_repeated = num_tokens;
        reply.pieces = {last, end};
        reply.gap = gap;
        return reply;
      },
      argc > 3 ? std::atoi(argv[3]) : 0);
  std::printf("%s\n", server.url().c_str());
  std::fflush(stdout);
  server.run();
}
