// Follows the end of the conversation while the reader is there; otherwise offers to go there.

import { setText } from "./dom.js";

const NEAR_PX = 60;
const LOAD_OLDER_PX = 500;

export class Follow {
  constructor({ scroller, content, pill, onnearstart }) {
    Object.assign(this, { scroller, content, pill, onnearstart });
    this.following = true;
    this.unseen = false;
    this.lastTop = 0;
    scroller.addEventListener("scroll", () => this.scrolled(), { passive: true });
    // Where all fits on the screen nothing scrolls, and the wheel alone tells that the reader wants to go up.
    scroller.addEventListener("wheel", (event) => event.deltaY < 0 && scroller.scrollTop === 0 && this.onnearstart(), { passive: true });
    pill.addEventListener("click", () => this.toEnd());
    // Whoever opens something wants to read it: the growth it causes is not followed.
    content.addEventListener("click", (event) => event.target.closest("summary, button") && (this.opening = true));
    const resized = new ResizeObserver(() => this.settle());
    resized.observe(content);
    resized.observe(scroller);
  }

  get distance() {
    const { scrollHeight, scrollTop, clientHeight } = this.scroller;
    return scrollHeight - scrollTop - clientHeight;
  }

  scrolled() {
    const { scrollTop } = this.scroller;
    const up = scrollTop < this.lastTop - 1;
    this.lastTop = scrollTop;
    // Growing text also moves the end away; only going up means that the reader left it.
    if (this.distance < NEAR_PX) this.following = true;
    else if (up) this.following = false;
    if (this.following) this.unseen = false;
    if (scrollTop < LOAD_OLDER_PX && up) this.onnearstart();
    this.show();
  }

  /** Something was drawn at the end. */
  grown() {
    if (!this.following) this.unseen = true;
    this.settle();
  }

  settle() {
    if (this.opening) {
      this.opening = false;
      this.following = this.distance < NEAR_PX;
    } else if (this.following) {
      this.scroller.scrollTop = this.scroller.scrollHeight;
      this.lastTop = this.scroller.scrollTop;
    }
    this.show();
  }

  toEnd() {
    this.following = true;
    this.unseen = false;
    this.settle();
  }

  /** Draw something above the reader without moving what is read. */
  keepingPlace(anchor, draw) {
    const before = anchor?.getBoundingClientRect().top;
    draw();
    if (!anchor || this.following) return;
    this.scroller.scrollTop += anchor.getBoundingClientRect().top - before;
    this.lastTop = this.scroller.scrollTop;
  }

  show() {
    this.pill.hidden = this.following || this.distance < NEAR_PX;
    setText(this.pill, this.unseen ? "New below ↓" : "To the end ↓");
  }
}
