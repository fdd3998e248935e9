#include "engine/quantize/calibration.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/files/regular_file.h"
#include "base/json.h"

// The assembler reads the file; see engine/runtime/demo_model.cc.
__asm__(
    ".pushsection .rodata\n.global tgi_calibration_text\ntgi_calibration_text:\n"
    ".incbin \"" TGI_ASSETS_DIR
    "/calibration.txt\"\n.global tgi_calibration_text_end\ntgi_calibration_text_end:\n"
    ".byte 0\n.popsection\n");
extern "C" const char tgi_calibration_text[];
extern "C" const char tgi_calibration_text_end[];

namespace tgi {
namespace {

constexpr size_t kMaxTextBytes = size_t{32} << 20;

std::vector<std::string> read_json_lines(std::string_view text, const std::string& file) {
  std::vector<std::string> out;
  int64_t number = 0;
  while (!text.empty()) {
    ++number;
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    try {
      const Json json = parse_json(line);
      out.push_back(JsonReader(json, "").string("text"));
    } catch (const Error& error) {
      throw error.in(fmt::format("{}: line {}", file, number));
    }
  }
  return out;
}

std::vector<std::string> read_documents(const std::string& file) {
  RegularFile opened = open_regular_file(file);
  const bool is_cut = opened.size > kMaxTextBytes;
  if (is_cut) opened.size = kMaxTextBytes;
  const std::string whole = read_to_end(opened, file);
  if (!file.ends_with(".jsonl")) return {whole};
  std::string_view text = whole;
  if (is_cut) text = text.substr(0, text.rfind('\n') + 1);
  return read_json_lines(text, file);
}

}  // namespace

std::string_view built_in_calibration_text() {
  return {tgi_calibration_text,
          static_cast<size_t>(tgi_calibration_text_end - tgi_calibration_text)};
}

Calibration read_calibration(const CalibrationOptions& options,
                             const ModelConfig& config,
                             const Tokenizer& tokenizer) {
  constexpr int32_t kUsualLength = 512;
  const int32_t context = config.max_positions > 0 ? config.max_positions : kUsualLength;
  const int32_t sequence_length = options.sequence_length.value_or(std::min(kUsualLength, context));
  if (options.num_sequences < 1 || sequence_length < 2) {
    throw Error(Code::kInvalidArgument,
                fmt::format("calibration needs at least 1 sequence of at least 2 tokens, got {} of "
                            "{}",
                            options.num_sequences, sequence_length));
  }
  if (config.max_positions > 0 && sequence_length > config.max_positions) {
    throw Error(Code::kInvalidArgument,
                fmt::format("calibration sequences of {} tokens, but the model's context has {}",
                            sequence_length, config.max_positions));
  }
  Calibration out;
  out.source = options.file.empty() ? "the built-in text" : options.file;
  const std::vector<std::string> documents =
      options.file.empty() ? std::vector{std::string(built_in_calibration_text())}
                           : read_documents(options.file);

  // Every sequence begins as a text of its own would.
  std::vector<int32_t> prefix = tokenizer.encode("", true);
  if (prefix.size() != 1 || prefix.front() != config.bos_token_id) prefix.clear();
  const auto length = static_cast<size_t>(sequence_length);
  const size_t step = length - prefix.size();
  std::vector<std::vector<int32_t>> all;
  for (const std::string& document : documents) {
    const std::vector<int32_t> ids = tokenizer.encode(document, false);
    for (size_t begin = 0; begin < ids.size(); begin += step) {
      const size_t count = std::min(step, ids.size() - begin);
      if (count < 2) continue;
      std::vector<int32_t> sequence = prefix;
      const auto from = ids.begin() + static_cast<ptrdiff_t>(begin);
      sequence.insert(sequence.end(), from, from + static_cast<ptrdiff_t>(count));
      all.push_back(std::move(sequence));
    }
  }
  if (all.empty()) {
    throw Error(Code::kInvalidArgument,
                fmt::format("{}: no text to calibrate on; expected plain text, or lines of JSON "
                            "with a \"text\" in a file that ends with .jsonl",
                            out.source));
  }
  const size_t wanted = std::min(all.size(), static_cast<size_t>(options.num_sequences));
  for (size_t i = 0; i < wanted; ++i) {
    out.sequences.push_back(std::move(all[i * all.size() / wanted]));
    out.num_tokens += static_cast<int64_t>(out.sequences.back().size());
  }
  return out;
}

}  // namespace tgi
