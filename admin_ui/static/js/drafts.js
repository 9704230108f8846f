// Unsent words, kept per session in this browser, so that a reload loses nothing.

const PREFIX = "halo:draft:";

export function draftPlace(workspace, sessionId) {
  return `${workspace}\n${sessionId ?? ""}`;
}

export function readDraft(place) {
  try {
    return localStorage.getItem(PREFIX + place) ?? "";
  } catch {
    return ""; // the browser may forbid storage; drafts then last as long as the page
  }
}

export function writeDraft(place, text) {
  if (place === null) return;
  try {
    if (text) localStorage.setItem(PREFIX + place, text);
    else localStorage.removeItem(PREFIX + place);
  } catch {
    // As above, or the store is full.
  }
}
