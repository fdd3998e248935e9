#include "cmd/line_editor.h"

#include <fmt/format.h>
#include <langinfo.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <filesystem>
#include <string_view>

#include "base/color.h"
#include "base/error.h"
#include "base/files/paths.h"
#include "cmd/editor_keys.h"
#include "ipc/client.h"

namespace tgi {
namespace {

constexpr int kHistorySize = 1000;

enum class Ready { kInput, kCancelled, kSignal };

// `signal_fd`: of EditorSignals, or -1.
Ready wait_for_input(int cancel_fd, int signal_fd) {
  std::array<pollfd, 3> fds = {{{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                                {.fd = cancel_fd, .events = POLLIN, .revents = 0},
                                {.fd = signal_fd, .events = POLLIN, .revents = 0}}};
  for (;;) {
    const int count = ::poll(fds.data(), fds.size(), -1);
    if (count < 0 && errno != EINTR) {
      throw Error(Code::kInternal, fmt::format("poll: {}", std::strerror(errno)));
    }
    if (count <= 0) continue;
    if ((fds[2].revents & POLLIN) != 0) return Ready::kSignal;
    return (fds[1].revents & POLLIN) != 0 ? Ready::kCancelled : Ready::kInput;
  }
}

ssize_t read_bytes(char* out, size_t size) {
  for (;;) {
    const ssize_t count = ::read(STDIN_FILENO, out, size);
    if (count >= 0 || errno != EINTR) return count;
  }
}

bool is_readable(int fd) {
  pollfd one{.fd = fd, .events = POLLIN, .revents = 0};
  return fd >= 0 && ::poll(&one, 1, 0) > 0 && (one.revents & POLLIN) != 0;
}

// Terminals put marks around what is pasted while this is on, so that its lines are one input.
constexpr std::string_view kPasteOn = "\x1b[?2004h";
constexpr std::string_view kPasteOff = "\x1b[?2004l";
constexpr std::wstring_view kPasteEnd = L"\x1b[201~";

void put(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

// Ctrl-D typed before the editor has the terminal: an end of file with no bytes before it. The
// editor would find a zero byte in its place.
bool is_at_typed_end() {
  pollfd one{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  int num_bytes = 0;
  return ::poll(&one, 1, 0) > 0 && ::ioctl(STDIN_FILENO, FIONREAD, &num_bytes) == 0 &&
         num_bytes == 0;
}

// libedit turns bytes into characters by the locale; the wire is UTF-8 whatever that is.
void use_utf8_locale() {
  std::setlocale(LC_CTYPE, "");
  if (std::strcmp(::nl_langinfo(CODESET), "UTF-8") != 0) std::setlocale(LC_CTYPE, "C.UTF-8");
}

}  // namespace

ReadLine PlainLines::read(const std::string& /*prompt*/) {
  try {
    std::optional<std::string> line = input_.next({.cancel_fd = cancel_fd_});
    if (!line) return {.kind = ReadLine::Kind::kEnd, .text = ""};
    return {.kind = ReadLine::Kind::kLine, .text = std::move(*line)};
  } catch (const ipc::Stopped&) {
    return {.kind = ReadLine::Kind::kInterrupted, .text = ""};
  }
}

LineEditor::LineEditor(std::string history_path, int cancel_fd)
    : history_path_(std::move(history_path)),
      cancel_fd_(cancel_fd),
      history_(::history_init(), ::history_end),
      editor_(nullptr, ::el_end) {
  use_utf8_locale();
  editor_.reset(::el_init("tgi", stdin, stdout, stderr));
  if (!history_ || !editor_) throw Error(Code::kInternal, "the line editor can't be set up");
  ::el_set(editor_.get(), EL_CLIENTDATA, this);
  ::el_set(editor_.get(), EL_PROMPT, &LineEditor::give_prompt);
  ::el_set(editor_.get(), EL_EDITOR, "emacs");
  ::el_set(editor_.get(), EL_HIST, ::history, history_.get());
  ::el_set(editor_.get(), EL_GETCFN, &LineEditor::read_character);
  if (knows_sequences()) bind_keys(editor_.get());
  ::el_source(editor_.get(), nullptr);  // ~/.editrc, where there is one
  if (knows_sequences()) {
    // As wide characters: of narrow ones it makes copies that nobody frees.
    ::el_wset(editor_.get(), EL_ADDFN, L"tgi-paste", L"insert what is pasted",
              &LineEditor::insert_paste);
    ::el_set(editor_.get(), EL_BIND, "\\e[200~", "tgi-paste", nullptr);
  }
  HistEvent event;
  ::history(history_.get(), &event, H_SETSIZE, kHistorySize);
  ::history(history_.get(), &event, H_SETUNIQUE, 1);
  load_history();
}

LineEditor::~LineEditor() = default;

char* LineEditor::give_prompt(EditLine* editor) {
  LineEditor* self = nullptr;
  ::el_get(editor, EL_CLIENTDATA, &self);
  return self->prompt_.data();
}

unsigned char LineEditor::insert_paste(EditLine* editor, wint_t /*key*/) {
  LineEditor* self = nullptr;
  ::el_get(editor, EL_CLIENTDATA, &self);
  std::wstring text;
  while (!text.ends_with(kPasteEnd)) {
    wchar_t next = 0;
    if (read_character(editor, &next) != 1) return CC_EOF;
    text += next;
  }
  text.resize(text.size() - kPasteEnd.size());
  std::wstring kept;
  for (const wchar_t one : text) {
    // Terminals paste a line's end as a carriage return; no other control moves the cursor or
    // ends a message.
    if (one == L'\r') kept += L'\n';
    if (one == L'\n' || one == L'\t' || (one >= L' ' && one != L'\x7f')) kept += one;
  }
  return kept.empty() || ::el_winsertstr(editor, kept.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
}

int LineEditor::read_character(EditLine* editor, wchar_t* out) {
  LineEditor* self = nullptr;
  ::el_get(editor, EL_CLIENTDATA, &self);
  std::mbstate_t state{};
  for (;;) {
    const Ready ready = wait_for_input(self->cancel_fd_, self->signals_->fd());
    if (ready == Ready::kCancelled) {
      self->interrupted_ = true;
      return -1;
    }
    if (ready == Ready::kSignal) {
      self->heed_signals();
      continue;
    }
    char byte = 0;
    const ssize_t count = read_bytes(&byte, 1);
    if (count <= 0) return static_cast<int>(count);
    const size_t used = std::mbrtowc(out, &byte, 1, &state);
    if (used == static_cast<size_t>(-2)) continue;  // more bytes to come
    if (used == static_cast<size_t>(-1)) {
      state = {};  // not UTF-8: the byte is passed over
      continue;
    }
    return 1;
  }
}

// A new size is all that the editor has to know. For all others the terminal is given back before:
// whoever stops us, as Ctrl-Z does, may have used it when we go on, and then it is taken and the
// line drawn again.
void LineEditor::heed_signals() {
  while (const std::optional<int> signal = signals_->next()) {
    if (*signal == SIGWINCH) {
      ::el_resize(editor_.get());
      continue;
    }
    if (knows_sequences()) put(kPasteOff);
    ::el_set(editor_.get(), EL_PREP_TERM, 0);
    EditorSignals::obey(*signal);
    ::el_set(editor_.get(), EL_PREP_TERM, 1);
    if (knows_sequences()) put(kPasteOn);
    ::el_set(editor_.get(), EL_REFRESH);
  }
}

ReadLine LineEditor::read(const std::string& prompt) {
  prompt_ = prompt;
  interrupted_ = false;
  int count = 0;
  const char* line = nullptr;
  if (!is_at_typed_end() && !is_readable(cancel_fd_)) {
    signals_.emplace();
    if (knows_sequences()) put(kPasteOn);
    line = ::el_gets(editor_.get(), &count);
    if (knows_sequences()) put(kPasteOff);
    signals_.reset();
  }
  // Ctrl-C empties the terminal's queue, which looks like Ctrl-D to whoever had seen it filled: it
  // never ends the input. What was typed ahead goes with the line.
  if (interrupted_ || is_readable(cancel_fd_)) {
    ::el_reset(editor_.get());
    ::tcflush(STDIN_FILENO, TCIFLUSH);
    std::fputs("^C\n", stdout);
    std::fflush(stdout);
    return {.kind = ReadLine::Kind::kInterrupted, .text = ""};
  }
  if (line == nullptr || count <= 0) {
    std::fputs("\n", stdout);
    std::fflush(stdout);
    return {.kind = ReadLine::Kind::kEnd, .text = ""};
  }
  std::string text(line);
  if (text.ends_with('\n')) text.pop_back();
  return {.kind = ReadLine::Kind::kLine, .text = std::move(text)};
}

void LineEditor::remember(const std::string& input) {
  HistEvent event;
  ::history(history_.get(), &event, H_ENTER, input.c_str());
  save_history();
}

void LineEditor::load_history() {
  try {
    make_state_dir();
  } catch (const Error& error) {
    problem_ = error.what();
    return;
  }
  if (!std::filesystem::exists(history_path_)) return;
  HistEvent event;
  if (::history(history_.get(), &event, H_LOAD, history_path_.c_str()) < 0) {
    problem_ = fmt::format("{}: not a history file", history_path_);
  }
}

// In one step, so that a second chat or a full disk never leaves half a history.
void LineEditor::save_history() {
  if (!problem_.empty()) return;
  std::string temporary = history_path_ + ".XXXXXX";
  const int fd = ::mkstemp(temporary.data());  // mode 0600
  std::FILE* file = fd >= 0 ? ::fdopen(fd, "w") : nullptr;
  HistEvent event;
  const bool written = file != nullptr && ::history(history_.get(), &event, H_SAVE_FP, file) >= 0;
  const bool closed = file != nullptr && std::fclose(file) == 0;
  if (written && closed && std::rename(temporary.c_str(), history_path_.c_str()) == 0) return;
  problem_ = fmt::format("{}: {}", history_path_, std::strerror(errno));
  if (fd >= 0) ::unlink(temporary.c_str());
}

}  // namespace tgi
