#include "cmd/bench_run.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cmath>
#include <exception>
#include <limits>
#include <random>
#include <thread>

#include "base/error.h"

namespace tgi {
namespace {

using Clock = std::chrono::steady_clock;

ipc::GenerateRequest random_request(const RunOptions& options, int sequence) {
  std::mt19937_64 random(options.seed * 1'000'003 + static_cast<uint64_t>(sequence));
  std::vector<int32_t> ids(static_cast<size_t>(options.prompt_length));
  for (int32_t& id : ids) {
    id = static_cast<int32_t>(random() % static_cast<uint64_t>(options.vocab_size));
  }
  ipc::GenerateRequest request;
  request.prompt_ids = std::move(ids);
  request.stream = true;
  request.params.max_new_tokens = options.decode_length;
  request.params.ignore_eos = true;
  request.params.use_prefix_cache = false;
  return request;
}

struct Window {
  double begin = 0;                                      // all have their first token
  double end = std::numeric_limits<double>::infinity();  // the first one has its last
};

Window decode_window(const RunTimes& times) {
  Window window;
  for (const auto& sequence : times) {
    window.begin = std::max(window.begin, sequence.front());
    window.end = std::min(window.end, sequence.back());
  }
  return window;
}

}  // namespace

RunTimes measure_run(const ipc::Client& client, const RunOptions& options) {
  const auto batch_size = static_cast<size_t>(options.batch_size);
  RunTimes times(batch_size);
  std::vector<std::exception_ptr> failures(batch_size);
  Clock::time_point begin;
  std::barrier ready(options.batch_size, [&begin]() noexcept { begin = Clock::now(); });
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < batch_size; ++i) {
      threads.emplace_back([&, i] {
        const ipc::GenerateRequest request = random_request(options, static_cast<int>(i));
        times[i].reserve(static_cast<size_t>(options.decode_length));
        ready.arrive_and_wait();
        try {
          client.generate(request, [&](const ipc::TokenEvent&) {
            times[i].push_back(std::chrono::duration<double>(Clock::now() - begin).count());
          });
        } catch (...) {
          failures[i] = std::current_exception();
        }
      });
    }
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  for (const auto& sequence : times) {
    if (static_cast<int64_t>(sequence.size()) != options.decode_length) {
      throw Error(Code::kInternal, "the daemon generated another number of tokens than was asked");
    }
  }
  return times;
}

double prefill_tokens_per_s(const RunTimes& times, int64_t prompt_length) {
  return static_cast<double>(prompt_length) * static_cast<double>(times.size()) /
         decode_window(times).begin;
}

std::optional<double> decode_tokens_per_s(const RunTimes& times) {
  const Window window = decode_window(times);
  size_t num_tokens = 0;
  for (const auto& sequence : times) {
    for (const double time : sequence) {
      if (time > window.begin && time <= window.end) ++num_tokens;
    }
  }
  if (window.end <= window.begin || num_tokens < 2 * times.size()) return std::nullopt;
  return static_cast<double>(num_tokens) / (window.end - window.begin);
}

std::vector<double> times_to_first_token(const RunTimes& times) {
  std::vector<double> out;
  for (const auto& sequence : times) out.push_back(sequence.front());
  return out;
}

std::vector<double> inter_token_times(const RunTimes& times) {
  std::vector<double> out;
  for (const auto& sequence : times) {
    for (size_t i = 1; i < sequence.size(); ++i) out.push_back(sequence[i] - sequence[i - 1]);
  }
  return out;
}

double percentile(std::vector<double> values, double share) {
  TGI_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const double rank = std::ceil(share * static_cast<double>(values.size()));
  return values[static_cast<size_t>(std::max(rank, 1.0)) - 1];
}

}  // namespace tgi
