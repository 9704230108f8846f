// How values are worded for a reader. Pure, except that times are shown in the reader's own zone.

const DAY_MS = 86_400_000;

/** 14:05 today, "yesterday", "3 May" this year, else a full date. */
export function shortTime(ms, now = Date.now()) {
  const date = new Date(ms);
  const today = new Date(now);
  const midnight = new Date(today.getFullYear(), today.getMonth(), today.getDate()).getTime();
  if (ms >= midnight) return date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  if (ms >= midnight - DAY_MS) return "yesterday";
  if (date.getFullYear() === today.getFullYear()) return date.toLocaleDateString([], { day: "numeric", month: "short" });
  return date.toLocaleDateString([], { day: "numeric", month: "short", year: "numeric" });
}

/** The time of a message: hours and minutes, with the day when it is not today. */
export function messageTime(ms, now = Date.now()) {
  const clock = new Date(ms).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  const day = shortTime(ms, now);
  return day === clock ? clock : `${day}, ${clock}`;
}

export function exactTime(ms) {
  return new Date(ms).toLocaleString([], { dateStyle: "full", timeStyle: "long" });
}

export function duration(ms) {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = ms / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${Math.round(seconds % 60)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** 950, 4.3k, 128k, 1.2M */
export function tokens(count) {
  if (count < 1000) return String(count);
  if (count < 999_500) return `${trimmed(count / 1000)}k`;
  return `${trimmed(count / 1_000_000)}M`;
}

function trimmed(number) {
  return number < 10 ? number.toFixed(1).replace(/\.0$/, "") : String(Math.round(number));
}

export function plural(count, one, many = `${one}s`) {
  return `${count} ${count === 1 ? one : many}`;
}

export function bytes(count) {
  return count < 1_048_576 ? `${Math.max(1, Math.round(count / 1024))} KB` : `${(count / 1_048_576).toFixed(1)} MB`;
}

/** The last part of a path; the whole path where there is none. */
export function baseName(path) {
  return path.replace(/\/+$/, "").split("/").pop() || path;
}
