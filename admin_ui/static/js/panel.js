// The list column folds away on a wide window and is a sheet on a narrow one. And the dialogs that stand in the page.

import { byData } from "./dom.js";

const FOLDED = "halo:list-folded";
const narrow = matchMedia("(max-width: 719px)");

export class Panel {
  constructor() {
    this.button = byData("list-button");
    this.shade = byData("shade");
    this.button.addEventListener("click", () => (narrow.matches ? this.sheet(!this.open) : this.fold(!this.folded)));
    this.shade.addEventListener("click", () => this.sheet(false));
    narrow.addEventListener("change", () => this.sheet(false));
    document.addEventListener("keydown", (event) => event.key === "Escape" && this.open && this.sheet(false));
    this.fold(localStorage.getItem(FOLDED) === "1");
    listenDialogs();
  }

  fold(folded) {
    this.folded = folded;
    document.body.classList.toggle("list-folded", folded);
    localStorage.setItem(FOLDED, folded ? "1" : "0");
    this.tell();
  }

  sheet(open) {
    this.open = open;
    document.body.classList.toggle("list-open", open);
    this.shade.hidden = !open;
    this.tell();
  }

  closeSheet() {
    if (this.open) this.sheet(false);
  }

  tell() {
    this.button.setAttribute("aria-expanded", String(narrow.matches ? Boolean(this.open) : !this.folded));
  }
}

/** <button data-opens="x"> shows <dialog data-dialog="x">. */
function listenDialogs() {
  for (const button of document.querySelectorAll("[data-opens]")) {
    const dialog = document.querySelector(`[data-dialog="${button.dataset.opens}"]`);
    button.addEventListener("click", () => dialog.showModal());
  }
  for (const dialog of document.querySelectorAll("[data-dialog]")) {
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog || event.target.closest("[data-close]")) dialog.close();
    });
  }
}
