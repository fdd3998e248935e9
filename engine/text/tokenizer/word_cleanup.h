// Taking away the spaces that English doesn't have around punctuation and contractions, as the
// decoders WordPiece and CTC of tokenizer.json do where they clean up.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace tgi {

// What is looked for and what it becomes; one after the other, each in what the ones before have
// left.
inline constexpr std::pair<std::string_view, std::string_view> kCleanups[] = {
    {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
    {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
    {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};

// found: not empty.
void replace_all(std::string& text, std::string_view found, std::string_view content);

void clean_up(std::string& text);

}  // namespace tgi
