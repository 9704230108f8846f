// Images to send: pasted, dropped or picked; each a chip with its thumbnail.

import { h, iconButton } from "./dom.js";
import { bytes } from "./format.js";

const MAX_BYTES = 5 * 1024 * 1024;
const MAX_FILES = 10;
const MAX_TOTAL_BYTES = 20 * 1024 * 1024; // more would not fit into one frame of the socket
const TYPES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

export class Attachments {
  constructor(root, { onchange, onproblem }) {
    Object.assign(this, { onchange, onproblem });
    this.files = []; // {name, size, data: base64, mimeType, url}
    this.list = root.querySelector("[data-attachments]");
    const picker = root.querySelector("[data-image-input]");
    root.querySelector("[data-attach]").addEventListener("click", () => picker.click());
    picker.addEventListener("change", () => {
      this.add(picker.files);
      picker.value = "";
    });
    root.addEventListener("paste", (event) => this.take(event, event.clipboardData));
    root.addEventListener("drop", (event) => {
      root.classList.remove("dropping");
      this.take(event, event.dataTransfer);
    });
    root.addEventListener("dragover", (event) => {
      if (!event.dataTransfer.types.includes("Files")) return;
      event.preventDefault();
      root.classList.add("dropping");
    });
    root.addEventListener("dragleave", () => root.classList.remove("dropping"));
  }

  take(event, transfer) {
    if (!transfer.files.length) return;
    event.preventDefault();
    this.add(transfer.files);
  }

  async add(files) {
    const problems = [];
    // A copy: the list of a file field empties itself when the field does.
    for (const file of [...files]) {
      const problem = this.refusal(file);
      if (problem) problems.push(problem);
      else this.files.push({ name: file.name || "image", size: file.size, mimeType: file.type, url: URL.createObjectURL(file), data: await base64(file) });
    }
    this.onproblem(problems.join(" "));
    this.draw();
  }

  refusal(file) {
    if (!TYPES.has(file.type)) return `${file.name} is not a PNG, JPEG, GIF or WebP image.`;
    if (file.size > MAX_BYTES) return `${file.name} has ${bytes(file.size)}; an image may have at most 5 MB.`;
    if (this.files.length >= MAX_FILES) return `At most ${MAX_FILES} images go with one message.`;
    const total = this.files.reduce((sum, one) => sum + one.size, file.size);
    return total > MAX_TOTAL_BYTES ? `${file.name} is left out: the images of a message may have 20 MB together.` : null;
  }

  clear() {
    for (const file of this.files) URL.revokeObjectURL(file.url);
    this.files = [];
    this.draw();
  }

  remove(file) {
    URL.revokeObjectURL(file.url);
    this.files = this.files.filter((one) => one !== file);
    this.draw();
  }

  draw() {
    this.list.hidden = !this.files.length;
    this.list.replaceChildren(
      ...this.files.map((file) =>
        h(
          "li",
          { class: "chip image", dataset: { attachment: file.name } },
          h("img", { src: file.url, alt: "" }),
          h("span", { class: "chip-text" }, file.name),
          iconButton("close", `Remove ${file.name}`, () => this.remove(file)),
        ),
      ),
    );
    this.onchange();
  }
}

async function base64(file) {
  const url = await new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
  return url.slice(url.indexOf(",") + 1);
}
