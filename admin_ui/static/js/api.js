// Requests to our own server: JSON in, JSON out. Whoever is signed out is led to the login and back again.

/** A refused or failed request; `message` is the server's sentence. */
export class ApiError extends Error {
  constructor(message, status, code) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export function toLogin() {
  const here = location.pathname + location.search;
  location.assign(`/login?next=${encodeURIComponent(here)}`);
}

export async function request(method, path, { query, body } = {}) {
  const url = new URL(`/api/${path}`, location.origin);
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined && value !== null) url.searchParams.set(name, value);
  }
  let response;
  try {
    response = await fetch(url, {
      method,
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new ApiError("The server cannot be reached. Check that it runs, then try again.", 0, "unreachable");
  }
  const answer = await response.json().catch(() => ({}));
  if (response.status === 401) toLogin();
  if (!response.ok) throw new ApiError(answer.error ?? `The server answered ${response.status}.`, response.status, answer.code);
  return answer;
}

export const get = (path, query) => request("GET", path, { query });
export const post = (path, body) => request("POST", path, { body });

/** True: signed in. False: not. Null: nobody answered, so we cannot know. */
export async function signedIn() {
  try {
    const response = await fetch("/api/auth/check");
    return response.status === 401 ? false : response.ok ? true : null;
  } catch {
    return null;
  }
}
