// GET /ui, its files, GET /docs, and GET / for browsers: the pages of `tgi serve`. They need no
// key, as they tell nothing of the server; what their scripts ask for goes by the routes that
// everybody has. Sources: assets/ui.
#pragma once

#include <memory>

#include "cmd/http/message.h"
#include "cmd/http/service.h"

namespace tgi::http {

Response ui_page(std::shared_ptr<Scope> scope, const Request& request);
Response docs_page(std::shared_ptr<Scope> scope, const Request& request);

// GET /ui/files/NAME. A name that is not there is a 404.
Response ui_file(std::shared_ptr<Scope> scope, const Request& request);

// GET /ui/: where the page is.
Response ui_moved(std::shared_ptr<Scope> scope, const Request& request);

// GET /: the page for who asks for text/html, TGI's health for everybody else.
Response page_or_health(std::shared_ptr<Scope> scope, const Request& request);

// GET /ui/requests: {"requests": [...]}, the last ones of the request log, the newest first.
Response recent_requests(std::shared_ptr<Scope> scope, const Request& request);

}  // namespace tgi::http
