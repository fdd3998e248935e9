// Takes the bytes of one stream apart, of the daemon's socket or of HTTP, and checks that exactly
// its own tokens come, each once and in order. Plain values without threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tgi {

enum class Way {
  kSocket,  // the daemon's own protocol
  kNative,  // POST /generate_stream
  kChat,    // POST /v1/chat/completions
};

class ReplyReader {
 public:
  ReplyReader(Way way, size_t stream, size_t num_tokens)
      : way_(way), stream_(stream), num_tokens_(num_tokens), in_headers_(way != Way::kSocket) {}

  // `now_ns`: when the bytes were received. Appends the age of each token to `latencies_ns`.
  void feed(std::string_view bytes, int64_t now_ns, std::vector<int64_t>& latencies_ns);

  // The other end closed.
  void on_closed();

  bool is_done() const { return done_ || !problem_.empty(); }
  size_t num_received() const { return num_received_; }
  const std::string& problem() const { return problem_; }  // "": none

 private:
  void on_headers(std::string_view& bytes);
  void on_chunk_bytes(std::string_view& bytes);
  void on_text(std::string_view text);
  void on_line(std::string_view line);
  void on_end();
  void fail(const std::string& problem);

  const Way way_;
  const size_t stream_;
  const size_t num_tokens_;
  bool in_headers_;
  std::string headers_;
  std::string chunk_head_;   // the line with the size of a chunk, as far as it came
  size_t chunk_left_ = 0;    // bytes, the two after it included
  bool last_chunk_ = false;  // only the empty line is to come
  std::string line_;         // an unfinished one
  size_t num_received_ = 0;
  bool saw_final_event_ = false;
  bool done_ = false;
  std::string problem_;
  int64_t now_ns_ = 0;
  std::vector<int64_t>* latencies_ns_ = nullptr;
};

}  // namespace tgi
