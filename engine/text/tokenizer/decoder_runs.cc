#include "engine/text/tokenizer/decoder_runs.h"

#include <algorithm>
#include <utility>

namespace tgi {
namespace {

void put(std::string& text, size_t size, std::vector<std::string>& out) {
  if (size == 0) return;
  out.push_back(text.substr(0, size));
  text.erase(0, size);
}

}  // namespace

void ReplaceRun::push(std::string part, std::vector<std::string>& out) {
  held_ += part;
  std::string certain;
  size_t end = 0;
  for (size_t at = held_.find(found_); at != std::string::npos; at = held_.find(found_, end)) {
    certain.append(held_, end, at - end);
    certain += content_;
    end = at + found_.size();
  }
  const std::string_view rest = std::string_view(held_).substr(end);
  size_t begun = std::min(rest.size(), found_.size() - 1);
  while (begun > 0 && !found_.starts_with(rest.substr(rest.size() - begun))) --begun;
  certain += rest.substr(0, rest.size() - begun);
  held_.erase(0, held_.size() - begun);
  if (!certain.empty()) out.push_back(std::move(certain));
}

void ReplaceRun::finish(std::vector<std::string>& out) {
  put(held_, held_.size(), out);
}

void StripRun::push(std::string part, std::vector<std::string>& out) {
  held_ += part;
  size_t begin = 0;
  while (start_ > 0 && std::string_view(held_).substr(begin).starts_with(content_)) {
    begin += content_.size();
    --start_;
  }
  held_.erase(0, begin);
  if (held_.empty()) return;
  start_ = 0;  // something else came
  size_t end = held_.size();
  for (int64_t i = 0; i < stop_ && std::string_view(held_).substr(0, end).ends_with(content_);
       ++i) {
    end -= content_.size();
  }
  put(held_, end, out);
}

// What is held are the last ones, at most `stop_` of them.
void StripRun::finish(std::vector<std::string>& /*out*/) {
  held_.clear();
}

void ChainRun::push_from(size_t first,
                         std::vector<std::string> tokens,
                         std::vector<std::string>& out) {
  for (size_t i = first; i < runs_.size() && !tokens.empty(); ++i) {
    std::vector<std::string> left;
    for (std::string& token : tokens) runs_[i]->push(std::move(token), left);
    tokens = std::move(left);
  }
  std::ranges::move(tokens, std::back_inserter(out));
}

void ChainRun::push(std::string token, std::vector<std::string>& out) {
  std::vector<std::string> tokens;
  tokens.push_back(std::move(token));
  push_from(0, std::move(tokens), out);
}

void ChainRun::finish(std::vector<std::string>& out) {
  for (size_t i = 0; i < runs_.size(); ++i) {
    std::vector<std::string> last;
    runs_[i]->finish(last);
    push_from(i + 1, std::move(last), out);
  }
}

}  // namespace tgi
