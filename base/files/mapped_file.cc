#include "base/files/mapped_file.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/error.h"

namespace tgi {

// What the signal handler knows of a mapping. Guards are made, used again and never freed: the
// handler may be walking over them at any moment, and can take no lock.
struct MappedFile::Guard {
  std::atomic<uintptr_t> begin = 0;
  std::atomic<uintptr_t> end = 0;  // 0: not in use
  std::atomic<bool> is_taken = false;
  std::atomic<bool> is_damaged = false;
  Guard* next = nullptr;  // constant once it is in the list
};

namespace {

struct sigaction previous_action {};  // written once, before the handler can run

uintptr_t page_size() {
  static const auto size = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

}  // namespace

// A signal handler can be given nothing: this list is the process's, as the handler is.
constinit std::atomic<MappedFile::Guard*> MappedFile::guards_ = nullptr;

// Puts zeros in the place of all that follows, in one piece: a file that was cut has nothing behind
// the cut, and the load is lost in any case.
void MappedFile::on_bus_error(int number, siginfo_t* info, void* /*context*/) {
  const int saved_errno = errno;
  const auto at = reinterpret_cast<uintptr_t>(info->si_addr);
  const bool is_fault = info->si_code > 0;  // else somebody has sent it
  for (Guard* guard = guards_.load(std::memory_order_acquire); is_fault && guard != nullptr;
       guard = guard->next) {
    const uintptr_t end = guard->end.load(std::memory_order_acquire);
    if (at < guard->begin.load(std::memory_order_relaxed) || at >= end) continue;
    guard->is_damaged.store(true, std::memory_order_release);
    const uintptr_t page = at / page_size() * page_size();
    // The system call itself: tools that watch mmap are not made for signal handlers.
    const auto mapped = ::syscall(SYS_mmap, page, end - page, PROT_READ,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    errno = saved_errno;
    if (mapped != -1) return;
    break;
  }
  // Not ours: it ends the process where it happened, or goes to whoever had the signal before.
  ::sigaction(SIGBUS, &previous_action, nullptr);
  if (!is_fault) ::raise(number);
  errno = saved_errno;
}

void MappedFile::install_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    (void)page_size();
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGBUS, nullptr, &previous_action);
    ::sigaction(SIGBUS, &action, nullptr);
  });
}

MappedFile::Guard& MappedFile::guard_of(const std::byte* data, size_t size) {
  install_handler();
  Guard* guard = guards_.load(std::memory_order_acquire);
  while (guard != nullptr && guard->is_taken.exchange(true)) guard = guard->next;
  if (guard == nullptr) {
    guard = new Guard;
    guard->is_taken = true;
    guard->next = guards_.load();
    while (!guards_.compare_exchange_weak(guard->next, guard)) {
    }
  }
  const auto begin = reinterpret_cast<uintptr_t>(data);
  guard->is_damaged = false;
  guard->begin = begin;
  guard->end.store((begin + size + page_size() - 1) / page_size() * page_size(),
                   std::memory_order_release);
  return *guard;
}

MappedFile::MappedFile(const std::string& path) : MappedFile(open_regular_file(path), path) {}

MappedFile::MappedFile(const RegularFile& file, const std::string& path)
    : path_(path), size_(file.size) {
  if (size_ == 0) return;
  void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.fd.get(), 0);
  if (mapped == MAP_FAILED) {
    throw Error(errno == ENOMEM ? Code::kOutOfMemory : Code::kInvalidArgument,
                fmt::format("{}: mapping its {} bytes: {}", path, size_, std::strerror(errno)));
  }
  data_ = static_cast<const std::byte*>(mapped);
  guard_ = &guard_of(data_, size_);
}

MappedFile::~MappedFile() {
  if (guard_ == nullptr) return;
  guard_->end = 0;
  guard_->is_taken.store(false, std::memory_order_release);
  ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      guard_(std::exchange(other.guard_, nullptr)) {}

void MappedFile::check_intact() const {
  if (guard_ == nullptr || !guard_->is_damaged.load(std::memory_order_acquire)) return;
  struct stat status {};
  const bool is_there = ::stat(path_.c_str(), &status) == 0;
  if (is_there && static_cast<size_t>(status.st_size) < size_) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: had {} bytes when it was opened and was cut to {} while it was "
                            "read; is it being written?",
                            path_, size_, status.st_size));
  }
  throw Error(
      Code::kInvalidArgument,
      fmt::format("{}: some of its {} bytes could not be read; was it cut short and written "
                  "anew meanwhile, or does its disk fail?",
                  path_, size_));
}

void MappedFile::release(std::span<const std::byte> bytes) const {
  const auto begin =
      (reinterpret_cast<uintptr_t>(bytes.data()) + page_size() - 1) / page_size() * page_size();
  const auto end =
      reinterpret_cast<uintptr_t>(bytes.data() + bytes.size()) / page_size() * page_size();
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace tgi
