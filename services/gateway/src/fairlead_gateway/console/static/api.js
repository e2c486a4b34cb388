// Calls the public API. Every change carries the header that only a page of this server can send.

export class ApiError extends Error {
  constructor(status, body) {
    super(body?.message ?? `The server answered ${status}`);
    this.status = status;
    this.tag = body?._tag ?? "";
  }
}

let onSignedOut = () => {};
let ahead = 0;

/** The time of the server: the clock of this computer may be wrong. */
export function now() {
  return Date.now() + ahead;
}

/** Compare the clocks. Below a few seconds an answer may just have been slow. */
function compareClocks(answer) {
  const there = Date.parse(answer.headers.get("date") ?? "");
  const found = there + 500 - Date.now();
  if (!Number.isNaN(found)) ahead = Math.abs(found) > 5000 ? found : 0;
}

/** What to do when the server does not know the caller any more. */
export function whenSignedOut(handler) {
  onSignedOut = handler;
}

async function call(method, path, body, { quiet = false } = {}) {
  const headers = { "x-fairlead": "1" };
  if (method !== "GET") headers["content-type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), cache: "no-store" });
  } catch {
    throw new ApiError(0, { message: "The server cannot be reached. The page tries again by itself." });
  }
  compareClocks(answer);
  if (answer.status === 401 && !quiet) onSignedOut();
  if (!answer.ok) throw new ApiError(answer.status, await answer.json().catch(() => null));
  if (answer.status === 204 || answer.status === 202) return null;
  return answer.json();
}

export const get = (path) => call("GET", path);
export const post = (path, body) => call("POST", path, body);
export const patch = (path, body) => call("PATCH", path, body);
export const remove = (path) => call("DELETE", path);
export const quietGet = (path) => call("GET", path, undefined, { quiet: true });
export const quietPost = (path, body) => call("POST", path, body, { quiet: true });

/** The path of a session's route. */
export function sessionPath(id, rest = "") {
  return `/api/session/${encodeURIComponent(id)}${rest}`;
}

/** Store a file for a later prompt. */
export async function upload(id, file) {
  const query = new URLSearchParams({ name: file.name || "pasted", ...(file.type && { type: file.type.split(";")[0] }) });
  const answer = await fetch(sessionPath(id, `/upload?${query}`), {
    method: "POST",
    headers: { "x-fairlead": "1", "content-type": "application/octet-stream" },
    body: file,
  });
  if (!answer.ok) throw new ApiError(answer.status, await answer.json().catch(() => null));
  return (await answer.json()).data;
}

/** The content of a stored object, such as a whole output, as text. */
export async function readText(path) {
  const answer = await fetch(path, { headers: { "x-fairlead": "1" } });
  if (!answer.ok) throw new ApiError(answer.status, await answer.json().catch(() => null));
  return answer.text();
}

/** The content of a stored object as an address that an image can show. */
export async function readObjectUrl(path) {
  const answer = await fetch(path, { headers: { "x-fairlead": "1" } });
  if (!answer.ok) throw new ApiError(answer.status, null);
  return URL.createObjectURL(await answer.blob());
}

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** A new message id, so that a repeated request is the same prompt. */
export function messageId() {
  const time = (BigInt(Math.round(now())) * 4096n + 1n) & 0xffffffffffffn;
  const random = crypto.getRandomValues(new Uint8Array(14));
  return `msg_${time.toString(16).padStart(12, "0")}${[...random].map((byte) => ALPHABET[byte % 62]).join("")}`;
}
