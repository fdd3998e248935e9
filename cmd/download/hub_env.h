// The settings that huggingface_hub takes from the environment, read as it reads them (checked
// against 2.4.0), so that both find the same cache and send the same token.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace tgi::download {

using Variables = std::function<std::optional<std::string>(const std::string& name)>;

struct HubSettings {
  std::string cache_dir;   // HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, else HF_HOME/hub
  std::string endpoint;    // HF_ENDPOINT without a slash at its end
  std::string token;       // HF_TOKEN, HUGGING_FACE_HUB_TOKEN, else the token file; empty: none
  std::string token_from;  // "HF_TOKEN", "the file /home/me/...", for messages
  bool offline = false;    // HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE
  // HF_HUB_DOWNLOAD_TIMEOUT: without a byte for so long, a transfer has failed.
  long stall_timeout_s = 10;
  // Why nothing is downloaded to cache_dir: no variable chooses it, and there is no home. Empty: it
  // is.
  std::string no_home{};
  std::string ca_file;  // REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE, SSL_CERT_FILE; empty: the system's
};

// Those of this process.
Variables environment();

// Throws kInvalidArgument for an endpoint that is no http(s) address, a token that can't be sent
// and a timeout that is no number. The token file is read; when it can't be, there is no token.
HubSettings read_hub_settings(const Variables& variables);

// Without spaces around it. Throws kInvalidArgument when it can't be part of a header.
std::string clean_token(const std::string& token, const std::string& where);

// Replaces "~" at the beginning, $NAME and ${NAME}; unknown names stay.
std::string expand_path(const std::string& path, const Variables& variables);

}  // namespace tgi::download
