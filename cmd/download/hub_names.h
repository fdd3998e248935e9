// Names that come from users and from servers, checked before they become paths:
// ORG/NAME[:FILE][@REVISION] of a model, and the names of its files. What huggingface_hub refuses
// is refused here too.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tgi::download {

struct HubName {
  std::string repo;      // "ORG/NAME", or "NAME" of the first models
  std::string revision;  // a branch, a tag or a commit; "main" when none was given
  std::string file{};    // after a colon: a GGUF file, by its quantisation or name; mostly empty
  bool operator==(const HubName&) const = default;
};

// A model of the hub as its pages, llama.cpp and ollama write it: hf.co/ORG/NAME[:FILE],
// https://huggingface.co/ORG/NAME[/tree/REVISION], .../resolve/REVISION/FILE and .../blob/...;
// these pages also below `endpoint`, another server with the hub's API. The name that stands for
// it; anything else as it is.
std::string name_of_hub_address(std::string_view text, std::string_view endpoint);

// Nothing when `text` is no name of a model: a path, a URL, "demo". A file may also come last,
// behind the revision; a name without ORG has none: NAME:TAG is ollama's.
std::optional<HubName> parse_hub_name(std::string_view text);

// Throws kInvalidArgument saying what is wrong with it.
HubName require_hub_name(std::string_view text);

// A revision as it may be used in an address and below the folder refs. Throws kInvalidArgument.
void check_revision(std::string_view revision);

// A relative path of a file below a folder: no "..", nothing absolute, no empty part, no backslash,
// no control character, at most 1024 bytes. Throws kInvalidArgument that names the server as the
// culprit.
void check_file_name(std::string_view name);

// 40 lower-case hexadecimal digits.
bool is_commit(std::string_view text);

// Percent-encoding for a part of a path or a query; "/" stays where `keep_slash`.
std::string percent_encode(std::string_view text, bool keep_slash);
std::string percent_decode(std::string_view text);  // what is no such code stays

}  // namespace tgi::download
