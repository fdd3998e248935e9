// The page of `tgi serve`: puts its parts together. Everything it knows comes from the server's public routes.
import {apiKey, ask, askJson, onKeyWanted, partedModels} from "./api.js";
import * as chat from "./chat.js";
import {focusComposer, showState, startComposer} from "./composer.js";
import * as conversations from "./conversations.js";
import {askForKeyDialog, showHelp} from "./dialogs.js";
import {announce, byId, h, icon} from "./dom.js";
import {showServer} from "./server.js";
import {showSettings} from "./settings.js";
import {openSidebar, startSidebar} from "./sidebar.js";

const modelSelect = byId("model");
let version = "";

function showTheme() {
  const isDark = window.tgiTheme.isDark();
  byId("theme").replaceChildren(icon(isDark ? "sun" : "moon"));
  byId("theme").setAttribute("aria-label", isDark ? "Light theme" : "Dark theme");
}

const shortName = id => id.split("/").at(-1);

const option = ({id}, value = id) => h("option", {value, title: id}, shortName(id));

// The default model has the empty value: a chat goes on when the server gets another one.
async function loadModels() {
  try {
    const [{data}, info] = await Promise.all([askJson("v1/models"), askJson("info")]);
    version = info.version;
    const {models: [base, ...others], adapters} = partedModels(data);
    modelSelect.replaceChildren(option(base, ""), ...others.map(each => option(each)),
      ...(adapters.length ? [h("optgroup", {label: "Adapters"}, adapters.map(({id}) => h("option", {value: id}, id)))] : []));
    chat.nameModel(shortName(base.id));
    document.title = `${shortName(base.id)} – tgi`;
  } catch (error) {
    modelSelect.replaceChildren(h("option", {value: ""}, "no server"));
    announce(error.message);
  }
  showModel();
}

function showModel() {
  const {model} = conversations.shown().settings;
  if (model && ![...modelSelect.options].some(option => option.value === model)) {
    modelSelect.append(h("option", {value: model}, model));  // of an imported chat; the server will say if it has none
  }
  modelSelect.value = model ?? "";
}

function showConversation() {
  selectTab("chat");
  chat.render();
  showModel();
  showState();
  if (!matchMedia("(max-width: 760px)").matches) focusComposer();
}

const tabs = ["chat", "server"];
function selectTab(name, focus = false) {
  for (const each of tabs) {
    const tab = byId(`tab-${each}`);
    tab.setAttribute("aria-selected", String(each === name));
    tab.tabIndex = each === name ? 0 : -1;
    byId(`panel-${each}`).hidden = each !== name;
  }
  if (focus) byId(`tab-${name}`).focus();
  for (const part of [modelSelect.parentElement, byId("open-settings")]) part.hidden = name !== "chat";
  showServer(name === "server");
}

function openSettings() {
  const conversation = conversations.shown();
  showSettings(conversation.settings, () => {
    conversations.saveSettings(conversation);
    chat.render();
  });
}

function onKey(event) {
  const isTyping = event.target.matches?.("input, textarea, select");
  const inDialog = Boolean(document.querySelector("dialog[open]"));
  if (event.key === "Escape" && !inDialog) {
    if (byId("sidebar").classList.contains("open")) openSidebar(false);
    else chat.stop();
  }
  if (inDialog) return;
  const withAlt = event.altKey && !event.ctrlKey && !event.metaKey;
  const shortcuts = {KeyN: () => byId("new-chat").click(), KeyS: openSettings, Digit1: () => selectTab("chat"), Digit2: () => selectTab("server")};
  if (withAlt && shortcuts[event.code]) {
    event.preventDefault();
    shortcuts[event.code]();
  } else if (event.key === "/" && !isTyping) {
    event.preventDefault();
    selectTab("chat");
    focusComposer();
  }
}

onKeyWanted(async why => {
  const key = await askForKeyDialog(why);
  if (key) apiKey.set(key);
  return Boolean(key);
});

conversations.open();
startSidebar(showConversation);
startComposer();
showTheme();
showConversation();
loadModels();

document.addEventListener("themechange", showTheme);
document.addEventListener("keydown", onKey);
addEventListener("focus", loadModels);
byId("theme").addEventListener("click", () => window.tgiTheme.toggle());
byId("open-settings").addEventListener("click", openSettings);
byId("open-help").addEventListener("click", () => showHelp(version));
byId("set-key").addEventListener("click", async () => {
  const key = await askForKeyDialog("changed", apiKey.get());
  if (key === null) return;
  apiKey.set(key);
  // Told at once whether it is right.
  await ask("ui/requests").catch(error => announce(error.message));
});
modelSelect.addEventListener("change", () => {
  conversations.shown().settings.model = modelSelect.value;
  conversations.saveSettings(conversations.shown());
});
for (const name of tabs) {
  byId(`tab-${name}`).addEventListener("click", () => selectTab(name));
  byId(`tab-${name}`).addEventListener("keydown", event => {
    if (["ArrowLeft", "ArrowRight"].includes(event.key)) selectTab(name === "chat" ? "server" : "chat", true);
  });
}
