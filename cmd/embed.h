// tgi embed: the vector of a text, or of each line; tgi rerank: lines by how well they fit a
// question.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "cmd/session.h"

namespace tgi {

struct EmbedFlags {
  std::optional<std::string> text;
  std::optional<std::string> file;
  std::string format = "json";
  std::optional<std::string> output;
  std::string prompt;       // empty: the model's default
  std::string prompt_name;  // likewise
  std::optional<int64_t> dimensions;
  bool normalize = false;
  bool truncate = false;
  ModelFlags model;
  std::string adapter;  // empty: none
};

void add_embed_flags(CLI::App& app, EmbedFlags& flags);
int run_embed(const EmbedFlags& flags, const CommonFlags& common);

struct RerankFlags {
  std::string query;
  std::optional<std::string> file;
  std::optional<int64_t> top;
  bool json = false;
  bool raw_scores = false;
  bool truncate = false;
  ModelFlags model;
};

void add_rerank_flags(CLI::App& app, RerankFlags& flags);
int run_rerank(const RerankFlags& flags, const CommonFlags& common);

}  // namespace tgi
