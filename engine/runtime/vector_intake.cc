#include "engine/runtime/vector_intake.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/shortest_double.h"
#include "base/utf8.h"
#include "engine/runtime/intake.h"
#include "engine/runtime/live_request.h"
#include "engine/text/token_spans.h"
#include "engine/vectors/entity_groups.h"

namespace tgi {
namespace {

template <typename... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(Code::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace

VectorIntake::VectorIntake(const VectorHead& head,
                           const Tokenizer& tokenizer,
                           const ChatTemplate* chat_template,
                           int32_t vocab_size,
                           int32_t num_token_types,
                           int64_t max_tokens,
                           bool is_causal)
    : head_(head),
      tokenizer_(tokenizer),
      chat_template_(chat_template),
      vocab_size_(vocab_size),
      num_token_types_(num_token_types),
      max_tokens_(std::min(max_tokens, head.max_tokens().value_or(max_tokens))),
      is_causal_(is_causal) {
  if (!head.messages()) return;
  if (chat_template == nullptr) {
    refuse("texts reach this model through a chat template, and it has none");
  }
  takes_single_ = writes_texts(false);
  const bool is_pair = head.task() == Task::kClassify;
  if (is_pair ? writes_texts(true) : takes_single_) return;
  refuse("texts reach this model through a chat template, and it leaves {} out",
         is_pair ? "the messages of `query` and `document`" : "the message of `user`");
}

// A template that knows other roles only leaves the texts out, or refuses them.
bool VectorIntake::writes_texts(bool is_pair) const {
  const std::string first = "6ab1a";
  const std::string second = "6ab1b";
  try {
    const std::string text =
        write_messages("", first, is_pair ? std::optional<std::string>(second) : std::nullopt);
    return text.find(first) != std::string::npos &&
           (!is_pair || text.find(second) != std::string::npos);
  } catch (const Error&) {
    return false;
  }
}

std::string VectorIntake::write_messages(const std::string& prompt,
                                         const std::string& text,
                                         const std::optional<std::string>& pair) const {
  const TextMessages& how = *head_.messages();
  const bool has_parts = how.has_parts.value_or(chat_template_->takes_parts());
  OrderedJson messages = OrderedJson::array();
  const auto add = [&](const char* role, const std::string& content) {
    OrderedJson message = {{"role", role}, {"content", content}};
    if (has_parts) message["content"] = {{{"type", "text"}, {"text", content}}};
    messages.push_back(std::move(message));
  };
  if (!prompt.empty()) add("system", prompt);
  add(pair ? "query" : "user", text);
  if (pair) add("document", *pair);
  RenderOptions options;
  options.add_generation_prompt = how.add_generation_prompt;
  options.extra = OrderedJson(how.variables);
  options.keeps_parts = has_parts;
  return chat_template_->render(messages, options);
}

// What the template writes behind every text stays of one that is too long.
TypedIds VectorIntake::encode_messages(const ipc::TextInput& input,
                                       const std::string& prompt,
                                       const ipc::VectorParams& asked) const {
  if (!input.pair && !takes_single_) {
    refuse("`inputs`: the model's chat template writes pairs of a query and a document only");
  }
  const auto ids_of = [&](const std::string& text, const std::optional<std::string>& pair) {
    return tokenizer_.encode(write_messages(prompt, text, pair), false);
  };
  TypedIds out{.ids = ids_of(*input.text, input.pair)};
  const auto limit = static_cast<size_t>(max_tokens_);
  if (asked.truncate && out.ids.size() > limit) {
    std::optional<std::string> other_pair;
    if (input.pair) other_pair = "0";
    const std::vector<int32_t> other = ids_of("0", other_pair);
    const auto [end, other_end] =
        std::mismatch(out.ids.rbegin(), out.ids.rend(), other.rbegin(), other.rend());
    const auto kept = static_cast<size_t>(end - out.ids.rbegin());
    if (kept >= limit) {
      refuse(
          "`truncate`: what the template writes behind a text has {} tokens, as many as are "
          "taken in all",
          kept);
    }
    const bool is_left = side_of(asked) == CutSide::kLeft;
    const auto cut = out.ids.begin() + static_cast<ptrdiff_t>(is_left ? 0 : limit - kept);
    out.ids.erase(cut, cut + static_cast<ptrdiff_t>(out.ids.size() - limit));
  }
  out.type_ids.assign(out.ids.size(), 0);
  return out;
}

std::string VectorIntake::prompt_of(const ipc::VectorParams& asked) const {
  if (head_.task() == Task::kClassifyTokens) {
    const bool has_prompt = asked.prompt_name || !asked.prompt.value_or("").empty();
    if (has_prompt) refuse("`prompt`: entities are found in a text alone");
    return "";
  }
  if (asked.prompt) return *asked.prompt;
  const std::optional<std::string>& name =
      asked.prompt_name ? asked.prompt_name : head_.default_prompt();
  if (!name) return "";
  const auto found = head_.prompts().find(*name);
  if (found != head_.prompts().end()) return found->second;
  std::string known;
  for (const auto& [other, text] : head_.prompts()) known += (known.empty() ? "" : ", ") + other;
  refuse("`prompt_name`: the model has no prompt '{}'; {}", *name,
         known.empty() ? "it has none" : "there are: " + known);
}

CutSide VectorIntake::side_of(const ipc::VectorParams& asked) const {
  std::optional<CutSide> side;
  if (asked.truncation_side) side = cut_side_from_name(*asked.truncation_side);
  if (!side) side = head_.cut_side();
  if (!side) side = cut_side(tokenizer_);
  return side.value_or(CutSide::kRight);
}

std::vector<size_t> VectorIntake::kept_of(const TypedIds& whole,
                                          const ipc::VectorParams& asked) const {
  const bool is_long = static_cast<int64_t>(whole.ids.size()) > max_tokens_;
  const int64_t limit = is_long && asked.truncate ? max_tokens_ : INT64_MAX;
  auto kept = kept_tokens(whole, limit, side_of(asked));
  if (!kept) refuse("`truncate`: a text of this tokenizer can't be cut to {} tokens", max_tokens_);
  return *std::move(kept);
}

TypedIds VectorIntake::encode(const ipc::TextInput& input,
                              const std::string& prompt,
                              const ipc::VectorParams& asked,
                              const std::string& name) const {
  if (input.ids) {
    for (const int32_t id : *input.ids) {
      if (id >= vocab_size_) {
        refuse("{}: {} is not in the vocabulary of {} tokens", name, id, vocab_size_);
      }
    }
    TypedIds whole{.ids = *input.ids};
    whole.type_ids.assign(whole.ids.size(), 0);
    whole.parts.assign(whole.ids.size(), TokenPart::kFirst);
    return pick_tokens(whole, kept_of(whole, asked));
  }
  if (head_.messages()) return encode_messages(input, prompt, asked);
  const std::string text = prompt + *input.text;
  const std::optional<std::string_view> pair =
      input.pair ? std::optional<std::string_view>(*input.pair) : std::nullopt;
  const TypedIds whole = encode_typed(tokenizer_, text, pair, true);
  return pick_tokens(whole, kept_of(whole, asked));
}

std::vector<std::unique_ptr<Request>> VectorIntake::prepare(const ipc::VectorParams& asked) const {
  if (asked.dimensions && *asked.dimensions > head_.dimensions()) {
    refuse("`dimensions` must be 1 to {}, as long as the model's vectors are. Given: {}",
           head_.dimensions(), *asked.dimensions);
  }
  const std::string prompt = prompt_of(asked);
  std::vector<std::unique_ptr<Request>> out;
  const auto now = Clock::now();
  for (size_t i = 0; i < asked.inputs.size(); ++i) {
    const std::string name = asked.inputs.size() == 1 ? "`inputs`" : fmt::format("`inputs` {}", i);
    TypedIds ids = encode(asked.inputs[i], prompt, asked, name);
    const auto count = static_cast<int64_t>(ids.ids.size());
    if (count == 0) refuse("{}: the text has no tokens", name);
    refuse_image_tokens(tokenizer_, ids.ids, vocab_size_, name + ": the text");
    if (count > max_tokens_) {
      refuse("{} must have at most {} tokens, or `truncate` must be set. Given: {}", name,
             max_tokens_, count);
    }
    // Nothing of a decoder's text hangs on what is behind it.
    while (head_.padding() && ids.ids.size() > 1 && ids.ids.back() == *head_.padding()) {
      ids.ids.pop_back();
    }
    ids.type_ids.resize(ids.ids.size());
    auto request = std::make_unique<Request>();
    request->id = next_request_id();
    request->prompt_ids = std::move(ids.ids);
    if (num_token_types_ > 0 && head_.gives_token_types() &&
        std::ranges::any_of(ids.type_ids, [](int32_t type) { return type != 0; })) {
      request->token_types = std::move(ids.type_ids);
      for (int32_t& type : request->token_types) type = std::min(type, num_token_types_ - 1);
    }
    request->pooled = head_.inputs();
    if (asked.each_token) {
      request->pooled = {{.rows = PooledInput::Rows::kAll, .pooling = Pooling::kRows}};
    }
    request->use_prefix_cache = is_causal_ && head_.needs_last_only() && !asked.each_token;
    request->accepted_at = now;
    out.push_back(std::move(request));
  }
  return out;
}

ipc::EmbedResult VectorIntake::embed(const ipc::VectorParams& asked,
                                     std::span<const PooledText> texts) const {
  ipc::EmbedResult out;
  out.dimensions = asked.dimensions.value_or(head_.kept_dimensions());
  if (asked.each_token) out.dimensions = head_.hidden_size();
  for (const PooledText& text : texts) {
    if (asked.each_token) {
      out.vectors.push_back(ipc::base64_of(text.pooled.front()));
      out.num_tokens.push_back(text.num_tokens);
      continue;
    }
    std::vector<float> vector = head_.finish(text.pooled, text.num_tokens).front();
    const bool normalises = asked.normalize.value_or(head_.normalises());
    // What the model itself leaves out goes after its norm, as sentence-transformers has it.
    const bool is_normed_whole = normalises && head_.normalises() && !asked.dimensions;
    if (is_normed_whole) normalise(vector);
    const bool is_cut = out.dimensions < static_cast<int64_t>(vector.size());
    vector.resize(static_cast<size_t>(out.dimensions));
    if (normalises && (!is_normed_whole || (is_cut && asked.normalize))) normalise(vector);
    out.vectors.push_back(ipc::base64_of(vector));
    out.num_tokens.push_back(text.num_tokens);
  }
  return out;
}

std::vector<ipc::EntityInfo> VectorIntake::entities_of(const std::string& text,
                                                       const std::vector<std::vector<float>>& rows,
                                                       const ipc::VectorParams& asked) const {
  const TypedIds whole = encode_typed(tokenizer_, text, std::nullopt, true);
  const std::vector<TextSpan> spans = token_spans(tokenizer_, text, whole.ids, true);
  const std::vector<size_t> kept = kept_of(whole, asked);
  std::vector<LabelledToken> tokens;
  for (size_t i = 0; i < std::min(rows.size(), kept.size()); ++i) {
    if (whole.parts[kept[i]] == TokenPart::kAdded) continue;
    const TextSpan& span = spans[kept[i]];
    std::vector<float> scores = rows[i];
    softmax(scores);
    const auto best = std::ranges::max_element(scores);
    tokens.push_back({.label = head_.labels()[static_cast<size_t>(best - scores.begin())],
                      .score = static_cast<double>(*best),
                      .begin = span.start,
                      .end = span.stop});
  }
  std::vector<ipc::EntityInfo> out;
  for (Entity& entity : group_entities(tokens, text)) {
    out.push_back({.group = std::move(entity.group),
                   .score = entity.score,
                   .word = std::move(entity.word),
                   .start = entity.begin,
                   .end = entity.end});
  }
  return out;
}

ipc::TextScores VectorIntake::scores_of(const ipc::VectorParams& asked,
                                        const ipc::TextInput& input,
                                        const PooledText& text) const {
  std::vector<std::vector<float>> rows = head_.finish(text.pooled, text.num_tokens);
  if (head_.task() == Task::kClassifyTokens) {
    if (!input.text || input.pair) refuse("`inputs`: entities are found in single texts only");
    return {.entities = entities_of(replace_invalid_utf8(*input.text), rows, asked)};
  }
  std::vector<float>& scores = rows.front();
  if (!asked.raw_scores && head_.scores() == VectorHead::Scores::kSoftmax) softmax(scores);
  if (!asked.raw_scores && head_.scores() == VectorHead::Scores::kSigmoid) sigmoid(scores);
  ipc::TextScores out;
  for (const float score : scores) out.scores.push_back(shortest_double(score));
  return out;
}

ipc::ClassifyResult VectorIntake::classify(const ipc::VectorParams& asked,
                                           std::span<const PooledText> texts) const {
  ipc::ClassifyResult out;
  out.labels = head_.labels();
  for (size_t i = 0; i < texts.size(); ++i) {
    out.texts.push_back(scores_of(asked, asked.inputs[i], texts[i]));
    out.num_tokens.push_back(texts[i].num_tokens);
  }
  return out;
}

class PooledTexts::Sink final : public ResponseSink {
 public:
  Sink(std::shared_ptr<PooledTexts> texts, size_t index)
      : texts_(std::move(texts)), index_(index) {}

  void on_accepted(const ipc::AcceptedEvent& /*event*/) override {}
  void on_token(ipc::TokenEvent&& /*event*/) override {}
  void on_pooled(std::vector<std::vector<float>>&& pooled) override { pooled_ = std::move(pooled); }
  void on_done(ipc::DoneEvent&& event) override {
    texts_->take(index_, std::move(pooled_), event.num_prompt_tokens);
  }
  void on_error(const Error& error) override { texts_->fail(error); }

 private:
  const std::shared_ptr<PooledTexts> texts_;
  const size_t index_;
  std::vector<std::vector<float>> pooled_;
};

PooledTexts::PooledTexts(size_t count, Done done)
    : texts_(count), num_left_(count), done_(std::move(done)) {}

std::unique_ptr<ResponseSink> PooledTexts::sink(size_t index) {
  return std::make_unique<Sink>(shared_from_this(), index);
}

void PooledTexts::take(size_t index, std::vector<std::vector<float>>&& pooled, int64_t num_tokens) {
  Done done;
  {
    const std::lock_guard lock(mutex_);
    texts_[index] = {.pooled = std::move(pooled), .num_tokens = num_tokens};
    if (--num_left_ > 0) return;
    std::swap(done, done_);
  }
  if (done) done(std::move(texts_), nullptr);
}

void PooledTexts::fail(const Error& error) {
  Done done;
  {
    const std::lock_guard lock(mutex_);
    std::swap(done, done_);
  }
  if (done) done({}, &error);
}

}  // namespace tgi
