// Reads server-sent events from the body of an answer (HTML standard, section 9.2): only `data` matters here.

/** The data of each event, as it comes. */
export async function* eventsOf(response) {
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const {done, value} = await reader.read();
      rest += done ? decoder.decode() : decoder.decode(value, {stream: true});
      let end;
      while ((end = rest.search(/\r?\n\r?\n/)) >= 0) {
        const event = rest.slice(0, end);
        rest = rest.slice(end).replace(/^\r?\n\r?\n/, "");
        const data = event.split(/\r?\n/).filter(line => line.startsWith("data:"))
          .map(line => line.slice(5).replace(/^ /, "")).join("\n");
        if (data) yield data;
      }
      if (done) return;
    }
  } finally {
    reader.cancel().catch(() => {});  // who stops reading closes the connection, which ends the request
  }
}
