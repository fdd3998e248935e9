// Runs a fuzz target over a short corpus without libFuzzer: the files given, and for each a number
// of mutations that are the same every time. A crash, a sanitizer's report or an abort fails the
// test.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

void run_one(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

std::string mutate(std::string input, std::mt19937& random) {
  for (auto count = random() % 6 + 1; count > 0; --count) {
    if (input.empty()) input = "x";
    const size_t at = random() % input.size();
    switch (random() % 6) {
      case 0:
        input[at] = static_cast<char>(random());
        break;
      case 1:
        input.erase(at, random() % 16 + 1);
        break;
      case 2:
        input.insert(at, input.substr(random() % input.size(), random() % 32));
        break;
      case 3:
        input.resize(at);
        break;
      case 4:
        input.insert(at, 1, "{}[]\",:%\\0\xff\x80"[random() % 12]);
        break;
      default:
        input[at] = static_cast<char>(input[at] ^ (1 << random() % 8));
    }
  }
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  int count = 0;
  for (int i = 2; i < argc; ++i) {
    std::vector<std::filesystem::path> files;
    if (std::filesystem::is_directory(argv[i])) {
      for (const auto& entry : std::filesystem::directory_iterator(argv[i]))
        files.push_back(entry.path());
    } else {
      files.emplace_back(argv[i]);
    }
    for (const auto& path : files) {
      std::ifstream file(path, std::ios::binary);
      const std::string seed{std::istreambuf_iterator<char>(file), {}};
      run_one(seed);
      std::mt19937 random(static_cast<uint32_t>(seed.size()));
      for (int round = std::stoi(argv[1]); round > 0; --round, ++count)
        run_one(mutate(seed, random));
    }
  }
  std::printf("%d mutations\n", count);
  return count > 0 ? 0 : 1;
}
