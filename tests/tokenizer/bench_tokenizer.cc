// Times one tokenizer on one text: bench_tokenizer FOLDER TEXT. Prints seconds to load, then
// seconds to encode the text line by line and as a whole (best of three), one figure per line.
// scripts/bench/bench_tokenizer runs it beside the reference library.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "base/error.h"
#include "tests/tokenizer/golden.h"

namespace tgi {
namespace {

double seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double best_of_three(const std::function<void()>& work) {
  return std::min({seconds(work), seconds(work), seconds(work)});
}

void run(const std::string& folder, const std::string& path) {
  std::unique_ptr<Tokenizer> tokenizer;
  const double load = seconds([&] { tokenizer = load_folder(folder); });
  const std::vector<std::string> lines = read_lines(path);
  const std::string text = read_file(path);
  size_t num_ids = 0;
  const double by_line = best_of_three([&] {
    for (const std::string& line : lines) num_ids += tokenizer->encode(line, false).size();
  });
  const double whole = best_of_three([&] { num_ids += tokenizer->encode(text, false).size(); });
  fmt::print("{:.4f}\n{:.4f}\n{:.4f}\n", load, by_line, whole);
  if (num_ids == 0) fmt::print("nothing was encoded\n");
}

}  // namespace
}  // namespace tgi

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: bench_tokenizer FOLDER TEXT\n");
    return 2;
  }
  try {
    tgi::run(argv[1], argv[2]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
