// Asks this server. Addresses are relative, so that the page works below any prefix of a proxy.

const kKey = "tgi.api_key";
let askForKey = async () => null;

/** `ask` shows a dialog, sets the key, and resolves to whether there is one. */
export function onKeyWanted(ask) {
  askForKey = ask;
}

export const apiKey = {
  // Of this tab alone: gone when it is closed.
  get: () => sessionStorage.getItem(kKey) ?? "",
  set: key => key ? sessionStorage.setItem(kKey, key) : sessionStorage.removeItem(kKey),
};

/** A refusal of the server, in its own words. */
export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** What an error says, in whichever of the three forms it comes. */
export function messageOf(text, fallback) {
  try {
    const json = JSON.parse(text);
    const error = json.error ?? json;
    return error.message ?? (typeof error === "string" ? error : fallback);
  } catch {
    return text.trim().slice(0, 2000) || fallback;
  }
}

let asking = null;  // one dialog for all who wait

/** fetch with the key. A 401 asks the user for it, and asks the server again. Throws ApiError. */
export async function ask(path, options = {}) {
  for (;;) {
    const key = apiKey.get();
    const headers = {...options.headers};
    if (key) headers.Authorization = `Bearer ${key}`;
    let response;
    try {
      response = await fetch(path, {...options, headers, cache: "no-store"});
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ApiError(0, "The server can't be reached. Is tgi serve still running?");
    }
    if (response.status === 401 && options.mayAskForKey !== false) {
      if (apiKey.get() !== key) continue;  // another request has got it meanwhile
      asking ??= askForKey(key ? "wrong" : "wanted").finally(() => { asking = null; });
      if (await asking) continue;
      throw new ApiError(401, "This server wants an API key.");
    }
    if (!response.ok) {
      throw new ApiError(response.status, messageOf(await response.text(), `The server answered ${response.status}.`));
    }
    return response;
  }
}

export const askJson = async (path, options) => (await ask(path, options)).json();

/** POST of JSON. */
export function post(path, body, options = {}) {
  return ask(path, {...options, method: "POST", body: JSON.stringify(body), headers: {"Content-Type": "application/json"}});
}

/** What /v1/models lists: the default model first, then the others; adapters name what they are of. */
export const partedModels = data => ({models: data.filter(each => !each.parent), adapters: data.filter(each => each.parent)});
