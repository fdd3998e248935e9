#include "cmd/doctor_network.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/version.h"
#include "cmd/download/http_client.h"
#include "cmd/serve_options.h"

namespace tgi::doctor {
namespace {

using ipc::OrderedJson;

constexpr long kPatienceSeconds = 5;

download::HttpReply ask(const std::string& url,
                        bool head,
                        const std::string& ca_file,
                        bool use_proxy) {
  download::HttpClient client({.user_agent = fmt::format("tgi/{}", kVersion),
                               .connect_timeout_s = kPatienceSeconds,
                               .stall_timeout_s = kPatienceSeconds,
                               .ca_file = ca_file,
                               .use_proxy = use_proxy});
  download::HttpRequest request;
  request.url = url;
  request.head = head;
  return client.exchange(request, {});
}

// Addresses that mean all of the machine are asked at the loopback one.
std::string reachable(const std::string& host) {
  if (host == "0.0.0.0") return "127.0.0.1";
  return host == "::" ? "::1" : host;
}

bool is_own(const download::HttpReply& reply) {
  const OrderedJson info = OrderedJson::parse(reply.body, nullptr, false);
  return reply.ok() && info.is_object() && info.contains("router") && info.contains("version");
}

}  // namespace

Finding look_at_network(const std::optional<JobRecord>& last,
                        const download::HubSettings& settings) {
  Finding out{
      .name = "network", .text = "", .data = {{"endpoint", settings.endpoint}, {"asked", false}}};
  if (!last || last->state != "failed") {
    out.verdict = Verdict::kUnknown;
    out.text = last ? "not asked: the last download went well" : "not asked: no download failed";
    return out;
  }
  const std::string failed =
      fmt::format("the last download, {}, failed: {}", last->subject, last->message);
  out.data["asked"] = true;
  out.data["failed_download"] = last->subject;
  if (settings.offline) {
    out.verdict = Verdict::kWarn;
    out.text = failed;
    out.advice = "HF_HUB_OFFLINE is set: nothing is downloaded while it is";
    return out;
  }
  try {
    const download::HttpReply reply = ask(settings.endpoint, true, settings.ca_file, true);
    out.data["status"] = reply.status;
    out.text = fmt::format("{} answers now ({}); {}", settings.endpoint, reply.status, failed);
    if (reply.status >= 500) {
      out.verdict = Verdict::kWarn;
      out.advice = "the server is in trouble: try again later";
    }
  } catch (const download::UnknownHost& error) {
    out.verdict = Verdict::kFail;
    out.text = error.what();
    out.advice =
        "the name is not known here: look at the network and /etc/resolv.conf, and at HF_ENDPOINT "
        "where it is set";
  } catch (const Error& error) {
    out.verdict = Verdict::kFail;
    out.text = error.what();
    out.advice = "look at the network, https_proxy and HF_ENDPOINT";
  }
  return out;
}

Finding look_at_gateway(const std::string& host, uint16_t port) {
  const std::string url = http_url(reachable(host), port);
  Finding out{.name = "gateway", .text = url, .data = {{"url", url}, {"running", false}}};
  try {
    const download::HttpReply info = ask(url + "/info", false, "", false);
    out.data["running"] = true;
    if (info.status != 401 && !is_own(info)) {
      out.verdict = Verdict::kWarn;
      out.text += fmt::format(": another program answers there ({})", info.status);
      out.advice = "`tgi serve` needs another port: --http :PORT, or `tgi config set serve.port`";
      return out;
    }
    const int status = ask(url + "/health", false, "", false).status;
    out.data["health"] = status;
    out.text += fmt::format(", /health {}", status);
    if (status != 200) {
      out.verdict = Verdict::kFail;
      out.advice = "its model or its daemon is not there: see the lines above, and its log";
    }
  } catch (const Error&) {
    out.verdict = Verdict::kUnknown;
    out.text = fmt::format("none at {}; `tgi serve` starts one", url);
  }
  return out;
}

}  // namespace tgi::doctor
