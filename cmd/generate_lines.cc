// tgi generate --lines: a fixed number of threads take lines from the front, the main thread writes
// the answers in order as soon as all earlier ones are there.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "base/error.h"
#include "cmd/generate.h"

namespace tgi {
namespace {

using Answer = std::variant<ipc::DoneEvent, ipc::Stopped, Error>;

constexpr int kFirstPauseMs = 20;
constexpr int kLongestPauseMs = 2000;

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

// Lines handed out and answers handed in. Safe to use from several threads.
class Board {
 public:
  explicit Board(size_t num_lines) : num_lines_(num_lines) {}

  // The next line to work on; nothing when all are taken or the work was stopped.
  std::optional<size_t> take() {
    const std::lock_guard lock(mutex_);
    if (stopped_ || next_ >= num_lines_) return std::nullopt;
    return next_++;
  }

  void put(size_t index, Answer answer) {
    const std::lock_guard lock(mutex_);
    answers_.emplace(index, std::move(answer));
    changed_.notify_one();
  }

  // Waits for the answer to one line.
  Answer wait_for(size_t index) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return answers_.contains(index); });
    return std::move(answers_.extract(index).mapped());
  }

  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }

 private:
  const size_t num_lines_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<size_t, Answer> answers_;  // guarded by mutex_, as are the next two
  size_t next_ = 0;
  bool stopped_ = false;
};

// The daemon's queue may be shorter than --parallel: what it refuses for that is offered again
// until it is taken. A daemon that is going away stops saying so soon.
Answer answer_one(const GenerateFlags& flags,
                  const ipc::GenerateParams& params,
                  const std::optional<AdapterChoice>& adapter,
                  const std::string& prompt,
                  const Session& session) {
  const ipc::Client& client = session.client();
  for (int pause_ms = kFirstPauseMs;; pause_ms = std::min(2 * pause_ms, kLongestPauseMs)) {
    try {
      try {
        ipc::GenerateRequest request = make_request(flags, params, prompt);
        request.model = session.model_name();
        set_adapter(adapter, request);
        return client.generate(request, [](const ipc::TokenEvent&) {});
      } catch (const Error& error) {
        if (error.code() != Code::kOverloaded) throw;
      }
      client.pause(pause_ms);
    } catch (const ipc::Stopped& stopped) {
      return stopped;
    } catch (const Error& error) {
      return error;
    }
  }
}

void write_answer(const GenerateFlags& flags,
                  size_t index,
                  const ipc::DoneEvent& done,
                  Session& session) {
  if (!flags.json) {
    session.out().write(done.best.text + "\n");
    return;
  }
  ipc::OrderedJson json = ipc::to_json(done);
  json["index"] = index;  // of the line; there is no other that a reader of lines could need
  session.out().write(json.dump() + "\n");
}

// A reader of objects finds one for every line.
void write_error(const GenerateFlags& flags,
                 size_t index,
                 Code code,
                 const std::string& message,
                 Session& session) {
  if (!flags.json) return;
  const ipc::OrderedJson json = {{"index", index},
                                 {"error", {{"code", code_row(code).name}, {"message", message}}}};
  session.out().write(json.dump(-1, ' ', false, ipc::OrderedJson::error_handler_t::replace) + "\n");
}

// Without a daemon the lines that are left can't fare better.
bool ends_everything(Code code) {
  return code == Code::kUnavailable || code == Code::kCancelled || code == Code::kDeviceLost;
}

int write_answers(const GenerateFlags& flags, size_t num_lines, Board& board, Session& session) {
  int exit_status = 0;
  for (size_t index = 0; index < num_lines; ++index) {
    const Answer answer = board.wait_for(index);
    if (const auto* done = std::get_if<ipc::DoneEvent>(&answer)) {
      write_answer(flags, index, *done, session);
      session.say_verbose(fmt::format("line {}: {}", index + 1, describe_usage(*done)));
      continue;
    }
    if (const auto* stopped = std::get_if<ipc::Stopped>(&answer)) throw ipc::Stopped(*stopped);
    const Error& error = std::get<Error>(answer);
    if (exit_status == 0) exit_status = code_row(error.code()).exit_status;
    Session::say(fmt::format("error: line {}: {}", index + 1, error.what()));
    write_error(flags, index, error.code(), error.what(), session);
    if (ends_everything(error.code()) && index + 1 < num_lines) {
      Session::say(fmt::format("{} lines after it are given up", num_lines - index - 1));
      for (size_t rest = index + 1; rest < num_lines; ++rest) {
        write_error(flags, rest, error.code(),
                    fmt::format("given up after line {}: {}", index + 1, error.what()), session);
      }
      break;
    }
  }
  return exit_status;
}

}  // namespace

int run_generate_lines(const GenerateFlags& flags,
                       const ipc::GenerateParams& params,
                       const std::string& text,
                       Session& session) {
  const std::vector<std::string> lines = split_lines(text);
  session.prepare();
  const std::optional<AdapterChoice> adapter = choose_adapter(session, flags);
  Board board(lines.size());
  std::vector<std::jthread> workers;
  struct StopOnExit {  // before the threads are joined, also when writing an answer throws
    ~StopOnExit() { board.stop(); }
    Board& board;
  };
  const size_t num_workers = std::min(lines.size(), static_cast<size_t>(flags.parallel));
  for (size_t i = 0; i < num_workers; ++i) {
    workers.emplace_back([&] {
      while (const auto index = board.take()) {
        Answer answer = answer_one(flags, params, adapter, lines[*index], session);
        if (std::holds_alternative<ipc::Stopped>(answer)) board.stop();
        board.put(*index, std::move(answer));
      }
    });
  }
  const StopOnExit stop_on_exit{board};
  return write_answers(flags, lines.size(), board, session);
}

}  // namespace tgi
