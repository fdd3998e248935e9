#include "cmd/http/ui_files.h"

#include <array>
#include <utility>

#include "base/error.h"
#include "cmd/http/gzip_reader.h"

// One line for each file. The build compresses NAME into NAME.gz of TGI_UI_DIR, which CMake sets
// for this source alone; the assembler reads it from there, as the daemon's demo model is read.
#define TGI_UI_FILES(X)                   \
  X(index_html, "index.html")             \
  X(docs_html, "docs.html")               \
  X(style_css, "style.css")               \
  X(chat_css, "chat.css")                 \
  X(server_css, "server.css")             \
  X(docs_css, "docs.css")                 \
  X(theme_js, "theme.js")                 \
  X(app_js, "app.js")                     \
  X(api_js, "api.js")                     \
  X(chat_js, "chat.js")                   \
  X(chat_request_js, "chat_request.js")   \
  X(code_js, "code.js")                   \
  X(composer_js, "composer.js")           \
  X(conversation_js, "conversation.js")   \
  X(conversations_js, "conversations.js") \
  X(dialogs_js, "dialogs.js")             \
  X(docs_js, "docs.js")                   \
  X(docs_example_js, "docs_example.js")   \
  X(dom_js, "dom.js")                     \
  X(event_stream_js, "event_stream.js")   \
  X(markdown_js, "markdown.js")           \
  X(math_js, "math.js")                   \
  X(message_js, "message.js")             \
  X(metrics_js, "metrics.js")             \
  X(plot_js, "plot.js")                   \
  X(server_js, "server.js")               \
  X(settings_js, "settings.js")           \
  X(sidebar_js, "sidebar.js")             \
  X(token_view_js, "token_view.js")       \
  X(tool_calls_js, "tool_calls.js")       \
  X(licences_txt, "licences.txt")         \
  X(marked_js, "lib/marked.js")           \
  X(katex_js, "lib/katex.js")

#define TGI_EMBED(symbol, file)                                                \
  __asm__(".pushsection .rodata\n.global tgi_ui_" #symbol "\ntgi_ui_" #symbol  \
          ":\n.incbin \"" TGI_UI_DIR "/" file ".gz\"\n.global tgi_ui_" #symbol \
          "_end\ntgi_ui_" #symbol "_end:\n.byte 0\n.popsection\n");            \
  extern "C" const char tgi_ui_##symbol[];                                     \
  extern "C" const char tgi_ui_##symbol##_end[];
TGI_UI_FILES(TGI_EMBED)
#undef TGI_EMBED

namespace tgi::http {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kContentTypes = {{
    {".html", "text/html; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".txt", "text/plain; charset=utf-8"},
}};

std::string_view content_type_of(std::string_view name) {
  for (const auto& [ending, type] : kContentTypes) {
    if (name.ends_with(ending)) return type;
  }
  return "application/octet-stream";
}

std::string_view between(const char* begin, const char* end) {
  return {begin, static_cast<size_t>(end - begin)};
}

}  // namespace

std::optional<UiFile> find_ui_file(std::string_view name) {
#define TGI_ROW(symbol, file) \
  std::pair{std::string_view(file), between(tgi_ui_##symbol, tgi_ui_##symbol##_end)},
  static const auto kFiles = std::to_array({TGI_UI_FILES(TGI_ROW)});
#undef TGI_ROW
  for (const auto& [file, bytes] : kFiles) {
    if (file == name) return UiFile{file, content_type_of(file), bytes};
  }
  return std::nullopt;
}

std::string gunzip(std::string_view compressed) {
  GzipReader reader;
  std::string out;
  const bool is_good = reader.read(compressed, [&](std::string_view part) {
    out += part;
    return true;
  });
  if (!is_good || !reader.is_whole()) throw Error(Code::kInternal, "a compressed file is damaged");
  return out;
}

}  // namespace tgi::http
