// tgi tokenize, detokenize, render: what the model's tokenizer and chat template make of a text.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cmd/session.h"

namespace tgi {

struct TokenizeFlags {
  std::optional<std::string> text;
  std::optional<std::string> file;
  bool ids = false;
  bool no_special = false;
  bool json = false;
  ModelFlags model;
};

struct DetokenizeFlags {
  std::vector<std::string> ids;
  ModelFlags model;
};

struct RenderFlags {
  std::optional<std::string> file;
  std::optional<std::string> system;
  std::optional<std::string> tools;
  std::optional<std::string> message;
  ModelFlags model;
};

void add_tokenize_flags(CLI::App& app, TokenizeFlags& flags);
int run_tokenize(const TokenizeFlags& flags, const CommonFlags& common);
void add_detokenize_flags(CLI::App& app, DetokenizeFlags& flags);
int run_detokenize(const DetokenizeFlags& flags, const CommonFlags& common);
void add_render_flags(CLI::App& app, RenderFlags& flags);
int run_render(const RenderFlags& flags, const CommonFlags& common);

}  // namespace tgi
