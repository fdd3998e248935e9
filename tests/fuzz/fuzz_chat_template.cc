// Any bytes as a chat template: parsing and rendering throw nothing but Error, a bad template is
// the template's fault and never an internal error, what comes out is UTF-8 and the same every
// time.
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/utf8.h"
#include "engine/text/chat_template.h"

namespace {

tgi::jinja::Limits small_limits() {
  tgi::jinja::Limits limits;
  limits.max_steps = 200'000;
  limits.max_text_bytes = 1 << 20;
  return limits;
}

const tgi::OrderedJson& messages() {
  static const auto kMessages = tgi::OrderedJson::parse(R"([
      {"role": "system", "content": "Be brief."},
      {"role": "user", "content": " What is 2 + 2? é✓ ", "n": 7, "f": -2.5, "big": 18446744073709551615},
      {"role": "assistant", "content": [{"type": "text", "text": "4\n<b>"}, {"type": "image"}],
       "tool_calls": [{"function": {"name": "add", "arguments": {"b": [1, true], "a": {}}}}]}])");
  return kMessages;
}

std::tm fixed_time() {
  std::tm time{};
  time.tm_year = 124;
  time.tm_mday = 1;
  return time;
}

// Nothing when it is refused.
std::optional<std::string> render(std::string_view source, bool continues) {
  tgi::RenderOptions options;
  options.tools = &messages();
  options.local_time = &fixed_time;
  options.add_generation_prompt = !continues;
  options.continue_final_message = continues;
  try {
    return tgi::ChatTemplate::parse(source, {{"bos_token", "<s>"}}, small_limits())
        .render(messages(), options);
  } catch (const tgi::Error& error) {
    const bool is_expected =
        error.code() == tgi::Code::kInvalidArgument || error.code() == tgi::Code::kUnsupported;
    if (!is_expected) std::abort();
    return std::nullopt;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view source(reinterpret_cast<const char*>(data + 1), size - 1);
  const bool continues = data[0] % 8 == 0;
  const std::optional<std::string> first = render(source, continues);
  if (first && !tgi::is_valid_utf8(*first)) std::abort();
  // Addresses never show, so that a template gives the same text every time.
  if (render(source, continues) != first) std::abort();
  return 0;
}
