#include "engine/text/tokenizer/decoder.h"

#include "engine/text/tokenizer/component_list.h"

namespace tgi {

Decoder::Decoder(const JsonReader& component) : words_(false) {
  DecoderState state;
  for_each_component(component, "decoders", [&](const JsonReader& each, const std::string& type) {
    steps_.push_back(make_decoder_step(each, type, state));
  });
  is_token_wise_ = state.is_token_wise;
  ends_unlike_ = state.ends_unlike;
}

DecoderRun Decoder::run(bool at_start) const {
  std::vector<std::unique_ptr<StepRun>> runs;
  for (const auto& step : steps_) runs.push_back(step->run(at_start));
  return DecoderRun(std::move(runs));
}

void Decoder::append(std::string_view token, bool at_start, std::string& out) const {
  if (words_) {
    if (!at_start) out += ' ';
    out += token;
    return;
  }
  append({.text = std::string(token), .at_start = at_start}, out);
}

void Decoder::append_last(std::string_view token, bool at_start, std::string& out) const {
  append({.text = std::string(token), .at_start = at_start, .is_last = true}, out);
}

void Decoder::append(RunningToken running, std::string& out) const {
  for (const auto& step : steps_) step->stream(running);
  out += running.text;
}

std::string Decoder::decode(const std::vector<std::string_view>& tokens) const {
  std::string text;
  if (words_) {
    for (size_t i = 0; i < tokens.size(); ++i) append(tokens[i], i == 0, text);
    return text;
  }
  std::vector<std::string> left(tokens.begin(), tokens.end());
  for (const auto& step : steps_) step->apply(left);
  for (const std::string& token : left) text += token;
  return text;
}

void DecoderRun::push(std::string_view token, std::string& out) {
  std::vector<std::string> certain;
  chain_.push(std::string(token), certain);
  for (const std::string& part : certain) out += part;
}

void DecoderRun::finish(std::string& out) {
  std::vector<std::string> certain;
  chain_.finish(certain);
  for (const std::string& part : certain) out += part;
}

}  // namespace tgi
