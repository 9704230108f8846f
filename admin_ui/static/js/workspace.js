// Choosing the workspace: the default one, one used before, or any folder the server may read.

import { get, post } from "./api.js";
import { dialogFrame, showDialog } from "./dialogs.js";
import { h, icon } from "./dom.js";
import { baseName } from "./format.js";

const RECENT = "halo:workspaces";
const MAX_RECENT = 6;

export function rememberWorkspace(path) {
  try {
    const others = recentWorkspaces().filter((one) => one !== path);
    localStorage.setItem(RECENT, JSON.stringify([path, ...others].slice(0, MAX_RECENT)));
  } catch {
    // Without storage the list of recent folders is empty; nothing else is lost.
  }
}

function recentWorkspaces() {
  try {
    return JSON.parse(localStorage.getItem(RECENT) ?? "[]");
  } catch {
    return [];
  }
}

/** Asks for a folder; resolves with its real path once the server has made it a workspace, else null. */
export async function chooseWorkspace(current, defaultWorkspace) {
  const picker = new Picker(defaultWorkspace);
  picker.browse(current);
  const chosen = await showDialog(picker.dialog);
  return chosen || null;
}

class Picker {
  constructor(defaultWorkspace) {
    this.path = h("input", { class: "field", "aria-label": "Folder", spellcheck: "false", dataset: { folderPath: "" } });
    this.up = h("button", { type: "button", class: "button", onclick: () => this.parent && this.browse(this.parent) }, icon("up"), "Up");
    this.folders = h("ul", { class: "folders", "aria-label": "Folders" });
    this.problem = h("p", { class: "problem", role: "alert", hidden: true });
    this.use = h("button", { type: "button", class: "button primary", dataset: { folderOpen: "" }, onclick: () => this.choose(this.path.value) }, "Open this folder");
    this.path.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      this.browse(this.path.value);
    });
    this.dialog = dialogFrame(
      "Open a workspace",
      h("p", { class: "hint" }, "A workspace is a folder the agents work in. Halo keeps its sessions in a .halo folder inside it."),
      this.shortcuts(defaultWorkspace),
      h("div", { class: "folder-path" }, this.up, this.path),
      this.folders,
      this.problem,
      h("div", { class: "dialog-actions" }, this.use),
    );
  }

  shortcuts(defaultWorkspace) {
    const paths = [defaultWorkspace, ...recentWorkspaces().filter((path) => path !== defaultWorkspace)];
    const chip = (path, words) =>
      h("button", { type: "button", class: "chip", title: path, onclick: () => this.choose(path) }, words);
    return h(
      "div",
      { class: "shortcuts" },
      ...paths.map((path, at) => chip(path, at === 0 ? "Default workspace" : baseName(path))),
    );
  }

  /** Shows a folder. Only the answer asked for last counts, and it never replaces what was typed meanwhile. */
  async browse(path) {
    const asked = (this.asked = (this.asked ?? 0) + 1);
    const written = this.path.value;
    try {
      const folder = await get("fs/browse", { path });
      if (asked !== this.asked) return;
      this.parent = folder.parent !== folder.path ? folder.parent : null;
      if (this.path.value === written) this.path.value = folder.path;
      this.up.disabled = !this.parent;
      this.list(folder);
      this.explain("");
    } catch (error) {
      if (asked === this.asked) this.explain(error.message);
    }
  }

  list(folder) {
    const inside = folder.entries.filter((entry) => (entry.type ?? "directory") === "directory" && !entry.hidden && entry.path);
    const rows = inside.map((entry) =>
      h("li", {}, h("button", { type: "button", onclick: () => this.browse(entry.path) }, icon("folder"), entry.name)),
    );
    if (!rows.length) rows.push(h("li", { class: "hint" }, "No folders in here."));
    this.folders.replaceChildren(...rows);
    this.folders.scrollTop = 0;
  }

  async choose(path) {
    this.use.disabled = true;
    try {
      const workspace = await post("fs/workspace/resolve", { path });
      this.dialog.close(workspace.path);
    } catch (error) {
      this.explain(error.message);
    } finally {
      this.use.disabled = false;
    }
  }

  explain(words) {
    this.problem.textContent = words;
    this.problem.hidden = !words;
  }
}
