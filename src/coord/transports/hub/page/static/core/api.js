// Requests to the hub's HTTP API: same origin, the cookie says who asks. A refusal becomes an ApiError with the
// hub's own message and hint.

import * as report from "./report.js";

export class ApiError extends Error {
  constructor(status, code, message, hint = "", problem = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.hint = hint;
    this.problem = problem;
  }
}

// Returns the decoded answer of a request; `fetcher` is for tests.
export async function request(path, {method = "GET", body, key, signal, fetcher = fetch} = {}) {
  if (report.isReport()) {
    const found = method === "GET" ? report.reportOf().answer(path) : null;
    if (found) return found;
    throw new ApiError(0, "report", "a report does not have this", "coord open shows the live page");
  }
  const headers = {Accept: "application/json"};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (key) headers["Idempotency-Key"] = key;
  let answer, text;
  try {
    answer = await fetcher(path, {
      method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin", cache: "no-store", redirect: "error",
    });
    text = await answer.text();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "unreachable", "the hub does not answer", "coord serve starts it");
  }
  const value = decode(text);
  if (answer.ok) return value;
  const problem = value && typeof value === "object" ? value : {};
  throw new ApiError(answer.status, problem.code ?? String(answer.status),
    problem.detail ?? `the hub answered ${answer.status}`, problem.hint ?? "", problem);
}

export const get = (path, query = {}, options = {}) => request(path + queryOf(query), options);

// Returns "?a=1&b=2"; a list repeats its name, and empty values are left out.
export function queryOf(values) {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== null && each !== "") found.append(name, String(each));
    }
  }
  const text = found.toString();
  return text ? `?${text}` : "";
}

// Fills a path with names: path`/v1/sessions/${session}`.
export const path = (parts, ...names) =>
  parts.reduce((made, part, number) => made + encodeURIComponent(names[number - 1]) + part);

// Returns a key that makes a write happen once.
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `page-${Array.from(bytes, (each) => each.toString(16).padStart(2, "0")).join("")}`;
}

function decode(text) {
  if (!text) return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
