// The theme, set before the first paint: what was chosen here, else what the system has. Not a module: it has to run at once.
(() => {
  const kKey = "tgi.theme";
  const system = matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => {
    try {
      return localStorage.getItem(kKey);
    } catch {
      return null;  // storage is refused: the system's theme is right
    }
  };
  const apply = () => {
    document.documentElement.dataset.theme = chosen() ?? (system.matches ? "dark" : "light");
    document.dispatchEvent(new Event("themechange"));
  };
  system.addEventListener("change", apply);
  window.tgiTheme = {
    isDark: () => document.documentElement.dataset.theme === "dark",
    toggle() {
      const next = this.isDark() ? "light" : "dark";
      try {
        // As the system has it: then it may go on following the system.
        if ((next === "dark") === system.matches) localStorage.removeItem(kKey);
        else localStorage.setItem(kKey, next);
      } catch {
        document.documentElement.dataset.theme = next;
        document.dispatchEvent(new Event("themechange"));
        return;
      }
      apply();
    },
  };
  apply();
})();
