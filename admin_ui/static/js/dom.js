// Small helpers to make elements. No markup is ever built from strings here.

const SVG = "http://www.w3.org/2000/svg";

const ICONS = {
  chevron: "M6 4l4 4-4 4",
  close: "M4 4l8 8M12 4l-8 8",
  pencil: "M10.5 3.5l2 2L6 12l-2.6.6L4 10z",
  trash: "M3.5 4.5h9M6.5 4.5v-1h3v1M5 4.5l.5 8h5l.5-8",
  folder: "M2.5 12.5v-9h4l1.5 2h5.5v7z",
  up: "M8 12.5v-9M4.5 7L8 3.5 11.5 7",
};

/** h("button", {class: "x", onclick: fn, dataset: {a: 1}}, "text", child) */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "dataset") Object.assign(element.dataset, value);
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("aria-hidden", "true");
  svg.classList.add("icon");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

/** A button that shows an icon; its name is read out and shown as a tooltip. */
export function iconButton(name, label, onclick, props = {}) {
  return h("button", { type: "button", class: "icon-button", "aria-label": label, title: label, onclick, ...props }, icon(name));
}

/** Set a text only when it differs, so that nothing is laid out again for nothing. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Set a sentence whose `code` is marked by backticks, as the server writes them. */
export function setSentence(element, text) {
  if (element.sentence === text) return;
  element.sentence = text;
  const parts = text.split(/`([^`\n]+)`/);
  element.replaceChildren(...parts.map((part, at) => (at % 2 ? h("code", {}, part) : part)).filter((part) => part !== ""));
}

export const byData = (name, root = document) => root.querySelector(`[data-${name}]`);
