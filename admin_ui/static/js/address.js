// The address always names what is open, so that a reload or a shared link shows the same.

export function readAddress(defaultWorkspace) {
  const query = new URLSearchParams(location.search);
  return {
    workspace: query.get("workspace") || defaultWorkspace,
    session: query.get("session") || null,
    agent: query.get("agent") || null,
  };
}

/** `agent`: who was chosen for a session that has not begun. `replace` for what the reader did not choose, such as a new
 *  chat receiving its id. */
export function writeAddress({ workspace, session, agent }, { replace = false } = {}) {
  const query = new URLSearchParams({ workspace });
  if (session) query.set("session", session);
  if (agent) query.set("agent", agent);
  const url = `/chat?${query}`;
  if (url === location.pathname + location.search) return;
  if (replace) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
}

const ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789";

/** A new session's id: 16 letters and digits. 252 is the biggest multiple of 36 in a byte, so that none is preferred. */
export function newSessionId() {
  let id = "";
  while (id.length < 16) {
    for (const byte of crypto.getRandomValues(new Uint8Array(32))) {
      if (byte < 252 && id.length < 16) id += ALPHABET[byte % 36];
    }
  }
  return id;
}
