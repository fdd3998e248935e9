#include "tests/guide/naive_recogniser.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/nlohmann_json.h"

namespace tgi::guide {

namespace {

// The names of an object as they are written, of a text that ends with one.
std::vector<std::string> names_of(const std::string& text) {
  std::vector<std::string> names;
  [[maybe_unused]] const nlohmann::json whole =
      nlohmann::json::parse(text + ":0}", [&](int depth, auto event, nlohmann::json& value) {
        if (event == nlohmann::json::parse_event_t::key && depth == 1) names.push_back(value);
        return true;
      });
  return names;
}

// Whether the last item of the array, or the last name of the object, that the text is in the
// middle of differs from those before.
bool ends_new_item(std::string_view text) {
  bool in_string = false;
  std::vector<size_t> open;
  for (size_t at = 0; at < text.size(); ++at) {
    if (in_string) {
      if (text[at] == '\\')
        ++at;
      else if (text[at] == '"')
        in_string = false;
    } else if (text[at] == '"') {
      in_string = true;
    } else if (text[at] == '[' || text[at] == '{') {
      open.push_back(at);
    } else if (text[at] == ']' || text[at] == '}') {
      open.pop_back();
    }
  }
  const std::string inside(text.substr(open.back()));
  if (inside[0] == '{') {
    const std::vector<std::string> names = names_of(inside);
    return std::count(names.begin(), names.end(), names.back()) == 1;
  }
  const auto items = nlohmann::json::parse(inside + "]");
  return std::count(items.begin(), items.end(), items.back()) == 1;
}

}  // namespace

bool NaiveRecogniser::accepts(std::string_view text) {
  text_ = text;
  known_.clear();
  const int32_t body = grammar_.rules().at(static_cast<size_t>(grammar_.start().id)).body;
  TGI_CHECK(body >= 0);
  return ends(body, 0).count(text.size()) > 0;
}

const NaiveRecogniser::Ends& NaiveRecogniser::ends(int32_t node, size_t begin) {
  const std::pair key(node, begin);
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  known_[key] = {};  // a rule that calls itself before any byte gives nothing new
  Ends found = ends_of(grammar_.nodes()[static_cast<size_t>(node)], begin);
  return known_[key] = std::move(found);
}

NaiveRecogniser::Ends NaiveRecogniser::ends_of(const Grammar::Node& node, size_t begin) {
  const auto part = [&](int32_t i) {
    return grammar_.parts()[static_cast<size_t>(node.first_part + i)];
  };
  Ends result;
  switch (node.kind) {
    case Grammar::Kind::kTerminal:
      return ends_of_terminal(node.terminal, begin);
    case Grammar::Kind::kToken:
      return {};
    case Grammar::Kind::kItemEnd:
      return ends_new_item(text_.substr(0, begin)) ? Ends{begin} : Ends{};
    case Grammar::Kind::kCall: {
      const int32_t body = grammar_.rules()[static_cast<size_t>(node.rule)].body;
      TGI_CHECK(body >= 0);
      return ends(body, begin);
    }
    case Grammar::Kind::kSequence:
      result = {begin};
      for (int32_t i = 0; i < node.num_parts && !result.empty(); ++i) {
        Ends next;
        for (const size_t at : result) next.merge(Ends(ends(part(i), at)));
        result = std::move(next);
      }
      return result;
    case Grammar::Kind::kEither:
      for (int32_t i = 0; i < node.num_parts; ++i) result.merge(Ends(ends(part(i), begin)));
      return result;
    case Grammar::Kind::kRepeat:
      return ends_of_repeat(node, begin);
  }
  return result;
}

NaiveRecogniser::Ends NaiveRecogniser::ends_of_terminal(Regex terminal, size_t begin) {
  const auto [place, is_new] = automata_.try_emplace(terminal.id);
  if (is_new) {
    try {
      place->second = grammar_.regex().dfa(terminal);
    } catch (const Error&) {
      // Too large for one automaton: each text is asked for.
    }
  }
  Ends result;
  if (!place->second) {
    for (size_t end = begin; end <= text_.size(); ++end) {
      if (grammar_.regex().matches(terminal, text_.substr(begin, end - begin))) result.insert(end);
    }
    return result;
  }
  const Dfa& dfa = *place->second;
  int32_t state = dfa.states.empty() ? Dfa::kDead : 0;
  for (size_t at = begin; state != Dfa::kDead; ++at) {
    if (dfa.states[static_cast<size_t>(state)].accepts) result.insert(at);
    if (at == text_.size()) break;
    state = dfa.states[static_cast<size_t>(state)].next[static_cast<unsigned char>(text_[at])];
  }
  return result;
}

NaiveRecogniser::Ends NaiveRecogniser::ends_of_repeat(const Grammar::Node& node, size_t begin) {
  const int32_t part = grammar_.parts()[static_cast<size_t>(node.first_part)];
  Ends result;
  Ends now = {begin};
  Ends seen;
  for (int32_t i = 0; !now.empty(); ++i) {
    if (i >= node.min) {
      result.insert(now.begin(), now.end());
      // Only what is new goes on, or a part of no bytes would go on for ever.
      Ends fresh;
      for (const size_t at : now) {
        if (seen.insert(at).second) fresh.insert(at);
      }
      if (node.max == kUnbounded) now = fresh;
    }
    if (node.max != kUnbounded && i >= node.max) break;
    Ends next;
    for (const size_t at : now) next.merge(Ends(ends(part, at)));
    now = std::move(next);
  }
  return result;
}

}  // namespace tgi::guide
