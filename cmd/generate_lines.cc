// tgi generate --lines: one thread reads lines as they come, others take them from the front, the
// main thread writes the answers in order as soon as all earlier ones are there.
#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/unique_fd.h"
#include "cmd/generate.h"
#include "cmd/line_input.h"
#include "cmd/output.h"

namespace tgi {
namespace {

using Answer = std::variant<ipc::DoneEvent, ipc::Stopped, Error>;

constexpr int kFirstPauseMs = 20;
constexpr int kLongestPauseMs = 2000;
constexpr size_t kLeastWindow = 64;

constexpr size_t kMostCounted = 1'000'000;  // of the lines that are given up

// Lines handed out and answers handed in. No more lines are in it than `window` from the one whose
// answer is written next, so that neither a long input nor one slow answer fills the memory. Safe
// to use from several threads.
class Board {
 public:
  explicit Board(size_t window) : window_(window) {}

  struct Line {
    size_t index;
    std::string text;
  };

  // Waits for room. False: the work was stopped, and the line is only counted.
  bool put_line(std::string line) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopped_ || num_lines_ < written_ + window_; });
    const size_t index = num_lines_++;
    if (stopped_) return false;
    lines_.push_back({index, std::move(line)});
    changed_.notify_all();
    return true;
  }

  // There are no others; `failure`: since the input could not be read. (optional)
  void end_lines(std::optional<Answer> failure = std::nullopt) {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    failure_ = std::move(failure);
    changed_.notify_all();
  }

  bool needs_worker() const {
    const std::lock_guard lock(mutex_);
    return lines_.size() > num_idle_;
  }

  // The next line to work on; nothing when all are taken or the work was stopped.
  std::optional<Line> take() {
    std::unique_lock lock(mutex_);
    ++num_idle_;
    changed_.wait(lock, [&] { return stopped_ || ended_ || !lines_.empty(); });
    --num_idle_;
    if (stopped_ || lines_.empty()) return std::nullopt;
    Line line = std::move(lines_.front());
    lines_.pop_front();
    return line;
  }

  void put(size_t index, Answer answer) {
    const std::lock_guard lock(mutex_);
    answers_.emplace(index, std::move(answer));
    changed_.notify_all();
  }

  // Waits for the answer to one line, those before which were written; nothing: there is no such
  // line. Throws what the input failed with.
  std::optional<Answer> wait_for(size_t index) {
    std::unique_lock lock(mutex_);
    written_ = index;
    changed_.notify_all();
    changed_.wait(lock, [&] { return answers_.contains(index) || is_behind_all(index); });
    if (answers_.contains(index)) return std::move(answers_.extract(index).mapped());
    if (!failure_) return std::nullopt;
    if (const auto* stopped = std::get_if<ipc::Stopped>(&*failure_)) throw ipc::Stopped(*stopped);
    throw Error(std::get<Error>(*failure_));
  }

  size_t num_lines() const {
    const std::lock_guard lock(mutex_);
    return num_lines_;
  }

  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }

 private:
  // REQUIRES: the lock is held.
  bool is_behind_all(size_t index) const { return ended_ && index >= num_lines_; }

  const size_t window_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Line> lines_;  // guarded by mutex_, as all below
  std::map<size_t, Answer> answers_;
  std::optional<Answer> failure_;
  size_t num_lines_ = 0;
  size_t written_ = 0;
  size_t num_idle_ = 0;  // threads that wait for a line
  bool ended_ = false;
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

// The threads that read lines and answer them, of which there are no more than lines wait for.
class Work {
 public:
  Work(const GenerateFlags& flags,
       LineInput& input,
       Board& board,
       const LineWatch& watch,
       std::function<Answer(const std::string&)> answer)
      : most_workers_(static_cast<size_t>(flags.parallel)),
        input_(input),
        board_(board),
        watch_(watch),
        answer_(std::move(answer)),
        stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!stop_) throw system_error("eventfd");
    watch_.stop_fd = stop_.get();
    workers_.emplace_back([this] { answer_lines(); });
    try {
      reader_ = std::thread([this] { read_lines(); });
    } catch (...) {
      end();
      throw;
    }
  }
  ~Work() { end(); }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  // Nothing is read any more, and what was asked has ended.
  void end() {
    board_.stop();
    const uint64_t one = 1;
    (void)!::write(stop_.get(), &one, sizeof one);
    if (reader_.joinable()) reader_.join();
    for (std::thread& worker : workers_) worker.join();
    workers_.clear();
  }

 private:
  void read_lines() {
    try {
      while (std::optional<std::string> line = input_.next(watch_)) {
        if (!board_.put_line(std::move(*line))) return;
        if (workers_.size() < most_workers_ && board_.needs_worker()) add_worker();
      }
      board_.end_lines();
    } catch (const ipc::Stopped& stopped) {
      board_.end_lines(Answer(stopped));
    } catch (const std::exception& error) {
      board_.end_lines(Answer(error_of(error)));
    }
  }

  void add_worker() {
    try {
      workers_.emplace_back([this] { answer_lines(); });
    } catch (const std::system_error&) {
      most_workers_ = workers_.size();  // those that are there answer all
    }
  }

  void answer_lines() {
    while (std::optional<Board::Line> line = board_.take()) {
      Answer answer = answer_(line->text);
      if (std::holds_alternative<ipc::Stopped>(answer)) board_.stop();
      board_.put(line->index, std::move(answer));
    }
  }

  size_t most_workers_;  // of the reader's thread, as workers_ while that runs
  LineInput& input_;
  Board& board_;
  LineWatch watch_;
  const std::function<Answer(const std::string&)> answer_;
  const UniqueFd stop_;
  std::vector<std::thread> workers_;
  std::thread reader_;
};

// Lines behind one that ended everything. A reader of objects gets one for each that ever comes; to
// count them for people only those are read that are there.
class GivenUp {
 public:
  GivenUp(const GenerateFlags& flags, const LineWatch& watch, LineInput& input, Session& session)
      : flags_(flags), watch_(watch), input_(input), session_(session) {}

  void tell(size_t failed, size_t num_lines, const Error& error) {
    const std::string told = fmt::format("given up after line {}: {}", failed + 1, error.what());
    size_t count = 0;
    const auto give_up = [&] {
      write_error(flags_, failed + 1 + count, error.code(), told, session_);
      ++count;
    };
    while (failed + 1 + count < num_lines) give_up();
    const auto next = [&] { return flags_.json ? input_.next(watch_) : input_.next_if_there(); };
    while ((flags_.json || count < kMostCounted) && next()) give_up();
    if (!input_.has_ended()) {
      Session::say("the lines after it are given up");
    } else if (count > 0) {
      Session::say(fmt::format("{} lines after it are given up", count));
    }
  }

 private:
  const GenerateFlags& flags_;
  const LineWatch& watch_;
  LineInput& input_;
  Session& session_;
};

int write_answers(const GenerateFlags& flags,
                  Board& board,
                  Session& session,
                  const std::function<void(size_t index, const Error& error)>& give_up) {
  int exit_status = 0;
  for (size_t index = 0;; ++index) {
    const std::optional<Answer> answer = board.wait_for(index);
    if (!answer) return exit_status;
    if (const auto* done = std::get_if<ipc::DoneEvent>(&*answer)) {
      write_answer(flags, index, *done, session);
      session.say_verbose(fmt::format("line {}: {}", index + 1, describe_usage(*done)));
      continue;
    }
    if (const auto* stopped = std::get_if<ipc::Stopped>(&*answer)) throw ipc::Stopped(*stopped);
    const Error& error = std::get<Error>(*answer);
    if (exit_status == 0) exit_status = code_row(error.code()).exit_status;
    Session::say(fmt::format("error: line {}: {}", index + 1, error.what()));
    write_error(flags, index, error.code(), error.what(), session);
    if (!ends_everything(error.code())) continue;
    give_up(index, error);
    return exit_status;
  }
}

}  // namespace

int run_generate_lines(const GenerateFlags& flags,
                       const ipc::GenerateParams& params,
                       LineInput input,
                       Session& session) {
  session.prepare();
  const std::optional<AdapterChoice> adapter = choose_adapter(session, flags);
  const LineWatch watch{.cancel_fd = session.interrupt().fd(), .output_fd = session.out().fd()};
  Board board(std::max<size_t>(kLeastWindow, 4 * static_cast<size_t>(flags.parallel)));
  Work work(flags, input, board, watch, [&](const std::string& prompt) {
    return answer_one(flags, params, adapter, prompt, session);
  });
  return write_answers(flags, board, session, [&](size_t index, const Error& error) {
    work.end();
    GivenUp(flags, watch, input, session).tell(index, board.num_lines(), error);
  });
}

}  // namespace tgi
