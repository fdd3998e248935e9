// The JSON body of a request as a struct of a body table.
#pragma once

#include <string>

#include "cmd/http/body_table.h"
#include "cmd/http/message.h"

namespace tgi::http {

// Throws BodyError (400) for what is no JSON.
inline OrderedJson parse_body(const Request& request) {
  try {
    return ipc::parse_json(request.body);
  } catch (const Error& error) {
    throw BodyError(400, std::string("Failed to parse the request body as JSON: ") + error.what());
  }
}

// Throws what read_body throws too.
template <typename T>
T body_of(const Request& request) {
  return read_body<T>(parse_body(request));
}

}  // namespace tgi::http
