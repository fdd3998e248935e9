// The page of GET /docs: lists what /api-doc/openapi.json says. Nothing is fetched from elsewhere.
#pragma once

#include <string_view>

namespace tgi::http {

inline constexpr std::string_view kDocsPage = R"html(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>tgi API</title>
<style>
body { font: 15px/1.5 sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em }
h2 { font-family: monospace; margin-bottom: 0 } pre { background: #8881; padding: 1em; overflow: auto }
</style></head><body>
<h1>tgi API</h1>
<p>The document behind this page is <a href="api-doc/openapi.json">api-doc/openapi.json</a> (OpenAPI 3).</p>
<div id="routes">loading</div>
<script>
const add = (parent, name, text) => {
  const element = document.createElement(name);
  element.textContent = text;
  parent.append(element);
};
fetch("api-doc/openapi.json").then(answer => answer.json()).then(doc => {
  const list = document.getElementById("routes");
  list.textContent = "";
  const schema = content => Object.values(content ?? {})[0]?.schema?.$ref?.split("/").pop();
  for (const [path, methods] of Object.entries(doc.paths)) {
    for (const [method, route] of Object.entries(methods)) {
      add(list, "h2", method.toUpperCase() + " " + path);
      add(list, "p", route.summary);
      const name = schema(route.requestBody?.content);
      if (name) add(list, "pre", JSON.stringify(doc.components.schemas[name], null, 1));
    }
  }
}).catch(error => { document.getElementById("routes").textContent = String(error); });
</script></body></html>
)html";

}  // namespace tgi::http
