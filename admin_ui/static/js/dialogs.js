// Dialogs built on the browser's own <dialog>: focus is kept inside, Esc closes, focus returns.

import { h, iconButton } from "./dom.js";

/** Show a dialog; resolves with its return value when it closes ("" when dismissed). */
export function showDialog(dialog) {
  document.body.append(dialog);
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue);
    });
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close(""));
    dialog.showModal();
  });
}

export function dialogFrame(title, ...children) {
  const dialog = h("dialog", { class: "dialog", "aria-label": title });
  const close = iconButton("close", "Close", () => dialog.close(""));
  dialog.append(h("header", { class: "dialog-head" }, h("h2", {}, title), close), ...children);
  return dialog;
}

/** True when the person said yes. `run` does it; its failure is explained in the dialog, which then stays open. */
export async function confirmDialog({ title, text, action, run }) {
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const yes = h("button", { type: "button", class: "button danger", dataset: { confirm: "" } }, action);
  const no = h("button", { type: "button", class: "button" }, "Keep it");
  const dialog = dialogFrame(title, h("p", {}, text), problem, h("div", { class: "dialog-actions" }, no, yes));
  no.addEventListener("click", () => dialog.close(""));
  yes.addEventListener("click", async () => {
    yes.disabled = true;
    try {
      await run();
      dialog.close("yes");
    } catch (error) {
      problem.textContent = error.message;
      problem.hidden = false;
      yes.disabled = false;
    }
  });
  return (await showDialog(dialog)) === "yes";
}
