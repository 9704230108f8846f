// Light, dark, or as the system has it. A classic script in the head, so that the first paint has the right colours.

(() => {
  const KEY = "halo:theme";
  const NEXT = { system: "light", light: "dark", dark: "system" };
  const WORDS = { system: "System colours", light: "Light colours", dark: "Dark colours" };

  function read() {
    try {
      const kept = localStorage.getItem(KEY);
      return kept in NEXT ? kept : "system";
    } catch {
      return "system";
    }
  }

  function show(theme) {
    document.documentElement.dataset.theme = theme;
    for (const button of document.querySelectorAll("[data-theme-button]")) {
      button.title = `${WORDS[theme]} (click to change)`;
      button.setAttribute("aria-label", button.title);
      button.dataset.themeButton = theme;
      button.querySelector("[data-theme-words]").textContent = theme[0].toUpperCase() + theme.slice(1);
    }
  }

  show(read());
  document.addEventListener("DOMContentLoaded", () => {
    show(read());
    for (const button of document.querySelectorAll("[data-theme-button]")) {
      button.addEventListener("click", () => {
        const theme = NEXT[read()];
        try {
          localStorage.setItem(KEY, theme);
        } catch {
          // It then lasts as long as the page.
        }
        show(theme);
      });
    }
  });
})();
