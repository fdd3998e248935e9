// The field at the bottom: Enter sends, Shift+Enter is a new line; while an answer runs its button stops it.
import * as chat from "./chat.js";
import {byId, icon} from "./dom.js";

const area = byId("composer-text");
const button = byId("send");
const form = byId("composer");

export const focusComposer = () => area.focus();

function fit() {
  area.style.height = "auto";
  area.style.height = `${Math.min(area.scrollHeight, innerHeight * 0.4)}px`;
}

export function showState() {
  const running = chat.isRunning();
  button.replaceChildren(icon(running ? "stop" : "up"));
  button.setAttribute("aria-label", running ? "Stop" : "Send");
  button.title = running ? "Stop (Esc)" : "Send (Enter)";
  button.disabled = !running && !area.value.trim();
}

function submit() {
  if (chat.isRunning()) return chat.stop();
  const text = area.value.trim();
  if (!text) return;
  area.value = "";
  fit();
  chat.send(text);
  showState();
}

export function startComposer() {
  form.addEventListener("submit", event => {
    event.preventDefault();
    submit();
  });
  area.addEventListener("input", () => {
    fit();
    showState();
  });
  area.addEventListener("keydown", event => {
    if (event.isComposing) return;  // Enter chooses a word of an input method
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      if (!chat.isRunning()) submit();
    } else if (event.key === "ArrowUp" && !area.value) {
      event.preventDefault();
      chat.editLast();
    }
  });
  chat.whenRunningChanges(showState);
  showState();
}
