#include "cmd/embed.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "cmd/adapter_choice.h"
#include "cmd/line_input.h"
#include "cmd/output.h"
#include "ipc/vectors.h"

namespace tgi {
namespace {

using ipc::OrderedJson;

constexpr size_t kTextsAtOnce = 256;  // of one request: what is done is written soon
constexpr size_t kBytesAtOnce = size_t{4} << 20;

LineInput open_texts(const std::optional<std::string>& file) {
  if (!file && ::isatty(STDIN_FILENO) == 1) {
    throw UsageError("no texts: pipe them in, a line each, or give --file FILE");
  }
  return LineInput(file.value_or("-"));
}

// The texts of lines, as many at once as one request takes.
class Texts {
 public:
  explicit Texts(LineInput input) : input_(std::move(input)) {}
  // One, whatever is in it.
  explicit Texts(std::string text)
      : input_(LineInput::of_text("")), one_(std::move(text)), num_lines_(1) {}

  // Those that are there, at least one; none: there are no others. Throws kInvalidArgument for a
  // line that is no text, after those before it, and where there is no line at all.
  std::vector<std::string> next(const LineWatch& watch) {
    if (one_) return {*std::exchange(one_, std::nullopt)};
    std::vector<std::string> out;
    size_t num_bytes = 0;
    while (!refused_ && out.size() < kTextsAtOnce && num_bytes < kBytesAtOnce) {
      std::optional<std::string> line = out.empty() ? input_.next(watch) : input_.next_if_there();
      if (!line) break;
      ++num_lines_;
      check(*line);
      num_bytes += line->size();
      if (!refused_) out.push_back(std::move(*line));
    }
    if (num_lines_ == 0) throw Error(Code::kInvalidArgument, "there are no texts");
    if (out.empty() && refused_) throw Error(*refused_);
    return out;
  }

 private:
  void check(const std::string& line) {
    const size_t valid = valid_utf8_prefix(line);
    if (valid == line.size()) return;
    refused_.emplace(Code::kInvalidArgument,
                     fmt::format("line {} is not valid UTF-8 at its byte {} (of {})", num_lines_,
                                 valid, line.size()));
  }

  LineInput input_;
  std::optional<std::string> one_;
  size_t num_lines_ = 0;
  std::optional<Error> refused_;
};

LineWatch watch_of(Session& session) {
  return {.cancel_fd = session.interrupt().fd(), .output_fd = session.out().fd()};
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

// An array or a file is written whole, at the end.
class VectorOutput {
 public:
  VectorOutput(const EmbedFlags& flags, Session& session)
      : flags_(flags), session_(session), is_npy_(flags.format == "npy") {}

  void write(const ipc::EmbedResult& result) {
    std::string part;
    for (const std::string& vector : result.vectors) {
      part += is_npy_ ? npy_row(vector) : json_line(num_rows_, vector);
      ++num_rows_;
    }
    num_cols_ = static_cast<size_t>(result.dimensions);
    is_npy_ || flags_.output ? static_cast<void>(kept_ += part) : session_.out().write(part);
  }

  void end() {
    const std::string header = is_npy_ ? npy_header(num_rows_, num_cols_) : "";
    if (flags_.output) {
      kept_.insert(0, header);
      write_file(*flags_.output, kept_);
    } else if (is_npy_) {
      session_.out().write(header);
      session_.out().write(kept_);
    }
  }

  size_t num_rows() const { return num_rows_; }

 private:
  static std::string npy_row(const std::string& vector) {
    const std::vector<float> values = ipc::floats_of_base64(vector);
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
  }

  const EmbedFlags& flags_;
  Session& session_;
  const bool is_npy_;
  std::string kept_;
  size_t num_rows_ = 0;
  size_t num_cols_ = 0;
};

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
      "a row for each text, of 32-bit floats. Lines of JSON come as the input does; an array, and "
      "what goes to a file, is kept in memory and written at the end.\n\n"
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
  Texts texts = flags.text ? Texts(*flags.text) : Texts(open_texts(flags.file));
  Session session(common);
  const LineWatch watch = watch_of(session);
  std::vector<std::string> some = texts.next(watch);
  choose_model(session, flags.model);
  session.prepare();
  ipc::VectorParams params = params_of(flags);
  params.model = session.model_name();
  if (!flags.adapter.empty()) {
    const AdapterChoice choice = choose_adapter(session, flags.adapter, flags.model.offline);
    params.adapter = choice.name;
    params.adapter_path = choice.path;
  }
  VectorOutput output(flags, session);
  int64_t num_tokens = 0;
  for (; !some.empty(); some = texts.next(watch)) {
    params.inputs.clear();
    for (std::string& text : some) params.inputs.push_back({.text = std::move(text)});
    const ipc::EmbedResult result =
        ipc::embed_result_from_json(session.client().call(ipc::kEmbed, ipc::to_json(params)));
    for (const int64_t count : result.num_tokens) num_tokens += count;
    output.write(result);
  }
  output.end();
  session.say_verbose(fmt::format("{} texts, {} tokens", output.num_rows(), num_tokens));
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
  Texts input(open_texts(flags.file));
  Session session(common);
  const LineWatch watch = watch_of(session);
  // The best one may be the last: all are read before any is written.
  std::vector<std::string> texts;
  for (auto some = input.next(watch); !some.empty(); some = input.next(watch)) {
    std::ranges::move(some, std::back_inserter(texts));
  }
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
