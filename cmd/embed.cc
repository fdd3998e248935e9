#include "cmd/embed.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "cmd/adapter_choice.h"
#include "cmd/output.h"
#include "ipc/vectors.h"

namespace tgi {
namespace {

using ipc::OrderedJson;

constexpr size_t kTextsAtOnce = 256;  // of one request: what is done is written soon

std::vector<std::string> read_lines(const std::optional<std::string>& file, std::string_view what) {
  if (!file && ::isatty(STDIN_FILENO) == 1) {
    throw UsageError(fmt::format("no {}: pipe them in, a line each, or give --file FILE", what));
  }
  const std::string all = read_input(file.value_or("-"));
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < all.size();) {
    const size_t end = std::min(all.find('\n', begin), all.size());
    lines.push_back(all.substr(begin, end - begin));
    begin = end + 1;
  }
  for (size_t i = 0; i < lines.size(); ++i) {
    if (const size_t valid = valid_utf8_prefix(lines[i]); valid != lines[i].size()) {
      throw Error(Code::kInvalidArgument,
                  fmt::format("line {} is not valid UTF-8 at its byte {} (of {})", i + 1, valid,
                              lines[i].size()));
    }
  }
  if (lines.empty()) throw Error(Code::kInvalidArgument, fmt::format("there are no {}", what));
  return lines;
}

// Version 1 of NumPy's format, (rows, cols) of little-endian f32.
std::string npy_header(size_t rows, size_t cols) {
  std::string facts =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows, cols);
  constexpr size_t kBefore = 10;  // magic, version, length
  const size_t size = (kBefore + facts.size() + 1 + 63) / 64 * 64;
  facts.resize(size - kBefore - 1, ' ');
  facts += '\n';
  std::string out = "\x93NUMPY";
  out += '\x01';
  out += '\x00';
  out += static_cast<char>(facts.size() & 0xFFU);
  out += static_cast<char>(facts.size() >> 8U);
  return out + facts;
}

std::string json_line(size_t index, const std::string& vector) {
  std::string out = fmt::format("{{\"index\":{},\"embedding\":[", index);
  const std::vector<float> values = ipc::floats_of_base64(vector);
  for (size_t i = 0; i < values.size(); ++i) {
    out += fmt::format("{}{}", i == 0 ? "" : ",", values[i]);
  }
  return out + "]}\n";
}

ipc::VectorParams params_of(const EmbedFlags& flags) {
  ipc::VectorParams params;
  params.truncate = flags.truncate;
  if (!flags.prompt.empty()) params.prompt = flags.prompt;
  if (!flags.prompt_name.empty()) params.prompt_name = flags.prompt_name;
  if (flags.normalize) params.normalize = true;
  params.dimensions = flags.dimensions;
  return params;
}

}  // namespace

void add_embed_flags(CLI::App& app, EmbedFlags& flags) {
  app.footer(
      "With a text its vector is written; without one each line of standard input is a text. As "
      "JSON a line holds {\"index\":N,\"embedding\":[...]}, counted from 0; npy is one array of "
      "NumPy, "
      "a row for each text, of 32-bit floats.\n\n"
      "The model has to be one that gives vectors: an encoder such as BGE or E5, a folder of "
      "sentence-transformers, or any other that was loaded with --pooling.");
  app.add_option("text", flags.text, "the text; without it each line of the input is one")
      ->type_name("TEXT");
  app.add_option("-f,--file", flags.file, "read lines from this file")->type_name("FILE");
  app.add_option("--format", flags.format, "json: a line for each text; npy: one array")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"json", "npy"}));
  app.add_option("-o,--output", flags.output, "write here instead of standard output")
      ->type_name("FILE");
  CLI::Option* prompt =
      app.add_option("--prompt", flags.prompt, "what stands before each text")->type_name("TEXT");
  app.add_option("--prompt-name", flags.prompt_name,
                 "one of the model's own prompts, such as query; absent: its default")
      ->type_name("NAME")
      ->excludes(prompt);
  app.add_option("--dimensions", flags.dimensions, "the first so many numbers of each vector")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20));
  app.add_flag("--normalize", flags.normalize,
               "to the length 1, also where the model's files don't say so");
  app.add_flag("--truncate", flags.truncate, "cut what is too long; else it is an error");
  add_model_flags(app, flags.model);
  add_adapter_flag(app, flags.adapter);
}

int run_embed(const EmbedFlags& flags, const CommonFlags& common) {
  if (flags.text && flags.file) {
    throw UsageError("a text and --file were both given; give one of them");
  }
  const bool is_npy = flags.format == "npy";
  if (is_npy && !flags.output && ::isatty(STDOUT_FILENO) == 1) {
    throw UsageError("an array of NumPy is not for a terminal: give --output FILE, or pipe it");
  }
  const std::vector<std::string> texts =
      flags.text ? std::vector{*flags.text} : read_lines(flags.file, "texts");
  Session session(common);
  choose_model(session, flags.model);
  session.prepare();
  ipc::VectorParams params = params_of(flags);
  params.model = session.model_name();
  if (!flags.adapter.empty()) {
    const AdapterChoice choice = choose_adapter(session, flags.adapter, flags.model.offline);
    params.adapter = choice.name;
    params.adapter_path = choice.path;
  }
  std::string whole;  // of a file or an array, which are written at the end
  const bool is_kept = is_npy || flags.output.has_value();
  int64_t num_tokens = 0;
  for (size_t begin = 0; begin < texts.size(); begin += kTextsAtOnce) {
    const size_t end = std::min(begin + kTextsAtOnce, texts.size());
    params.inputs.clear();
    for (size_t i = begin; i < end; ++i) params.inputs.push_back({.text = texts[i]});
    const ipc::EmbedResult result =
        ipc::embed_result_from_json(session.client().call(ipc::kEmbed, ipc::to_json(params)));
    if (is_npy && begin == 0) {
      whole = npy_header(texts.size(), static_cast<size_t>(result.dimensions));
    }
    std::string part;
    for (size_t i = begin; i < end; ++i) {
      const std::string& vector = result.vectors.at(i - begin);
      num_tokens += result.num_tokens.at(i - begin);
      if (!is_npy) {
        part += json_line(i, vector);
        continue;
      }
      const std::vector<float> values = ipc::floats_of_base64(vector);
      part.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    }
    is_kept ? static_cast<void>(whole += part) : session.out().write(part);
  }
  if (flags.output) {
    write_file(*flags.output, whole);
  } else if (is_kept) {
    session.out().write(whole);
  }
  session.say_verbose(fmt::format("{} texts, {} tokens", texts.size(), num_tokens));
  return 0;
}

void add_rerank_flags(CLI::App& app, RerankFlags& flags) {
  app.footer(
      "Each line of the input is a text. They are written with their scores, the best first: "
      "score, "
      "a tab, the text. The model has to be a cross-encoder, which scores a pair of texts.");
  app.add_option("query", flags.query, "what is looked for")->type_name("QUERY")->required();
  app.add_option("-f,--file", flags.file, "read lines from this file")->type_name("FILE");
  app.add_option("--top", flags.top, "the best so many; absent: all")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20));
  app.add_flag("--json", flags.json, "a line {\"index\":N,\"score\":X,\"text\":TEXT} for each");
  app.add_flag("--raw-scores", flags.raw_scores, "logits, as the model gives them");
  app.add_flag("--truncate", flags.truncate, "cut what is too long; else it is an error");
  add_model_flags(app, flags.model);
}

int run_rerank(const RerankFlags& flags, const CommonFlags& common) {
  const std::vector<std::string> texts = read_lines(flags.file, "texts");
  Session session(common);
  choose_model(session, flags.model);
  session.prepare();
  std::vector<double> scores;
  for (size_t begin = 0; begin < texts.size(); begin += kTextsAtOnce) {
    ipc::VectorParams params;
    params.model = session.model_name();
    params.truncate = flags.truncate;
    params.raw_scores = flags.raw_scores;
    for (size_t i = begin; i < std::min(begin + kTextsAtOnce, texts.size()); ++i) {
      params.inputs.push_back({.text = flags.query, .pair = texts[i]});
    }
    const ipc::ClassifyResult result =
        ipc::classify_result_from_json(session.client().call(ipc::kClassify, ipc::to_json(params)));
    for (const ipc::TextScores& text : result.texts) {
      if (result.labels.size() != 1 || text.scores.size() != 1) {
        throw Error(Code::kInvalidArgument,
                    fmt::format("the model gives {} scores for a pair of texts, and ranking takes "
                                "one: load a reranker",
                                result.labels.size()));
      }
      scores.push_back(text.scores.front());
    }
  }
  std::vector<size_t> order(texts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  if (flags.top) order.resize(std::min(order.size(), static_cast<size_t>(*flags.top)));
  for (const size_t i : order) {
    const OrderedJson row = {{"index", i}, {"score", scores[i]}, {"text", texts[i]}};
    session.out().write(flags.json ? row.dump() + "\n"
                                   : fmt::format("{:.6f}\t{}\n", scores[i], texts[i]));
  }
  return 0;
}

}  // namespace tgi
