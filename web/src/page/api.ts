// Asks the server. The types of its requests and answers are those of its OpenAPI description
// (tests/doubles/page_types.py); what is written out here and in the files that import this is not in it.

import { refused } from "./refused.svelte";
import type { ErrorBody as RefusedBody, OpenAiError, RunView, ServerInfo } from "$openapi";

/** An answer with what was asked for: OpenAPI says only that it may be there. */
export type With<Answer, Key extends keyof Answer> = Answer & { [key in Key]-?: NonNullable<Answer[key]> };

/** The numbers and names that stand in the sentence of an error. */
export type Values = RefusedBody["values"];

/** Every error of the server; what a proxy answers in its place may have no code. */
interface ErrorBody {
  /** Its sentence; of a path that is OpenAI's all that is told of it. */
  error: string | OpenAiError;
  code?: string;
  values?: Values;
}

/** What the server said against a request; status 0 if it could not be reached. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly code = "",
    readonly values: Values = {},
  ) {
    super(message);
  }

  /** What the server says; in a stream its status was sent before. */
  static told(status: number, { error, code, values }: ErrorBody): ApiError {
    if (typeof error === "object") return new ApiError(status, error.message, error.code, error.values);
    return new ApiError(status, String(error), code, values);
  }

  /** Whatever was thrown: what the server did not say has no status. */
  static of(error: unknown): ApiError {
    return error instanceof ApiError ? error : new ApiError(0, String(error));
  }
}

const KEY = "dragoman.key";
export const apiKey = {
  get: (): string => sessionStorage.getItem(KEY) ?? "",
  set: (key: string): void => sessionStorage.setItem(KEY, key),
};
// A link to a training brings the key of its server, behind the #. It does not stay in the address.
const [view, query] = location.hash.split("?");
const brought = new URLSearchParams(query).get("key");
if (brought) {
  apiKey.set(brought);
  history.replaceState(history.state, "", view);
}

export async function call(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  if (apiKey.get()) headers.set("Authorization", `Bearer ${apiKey.get()}`);
  let response: Response;
  try {
    response = await fetch(path, { ...init, headers });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "");
  }
  if (response.ok) return response;
  if (response.status === 403) refused.key = true;
  const body: unknown = await response.json().catch(() => null);
  if (body && typeof body === "object" && "error" in body) throw ApiError.told(response.status, body as ErrorBody);
  throw new ApiError(response.status, "");
}

export function post(body: unknown, signal?: AbortSignal): RequestInit {
  return {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    ...(signal ? { signal } : {}),
  };
}

/** Send a file in a form. */
export async function send(path: string, file: Blob, name: string, fields: Record<string, string>, signal: AbortSignal): Promise<Response> {
  const body = new FormData();
  for (const [field, value] of Object.entries(fields)) body.set(field, value);
  body.set("file", file, name);
  return call(path, { method: "POST", body, signal });
}

export async function info(): Promise<ServerInfo> {
  return (await call("v1/info")).json();
}

export async function runView(name: string): Promise<RunView> {
  return (await call(`v1/runs/${encodeURIComponent(name)}`)).json();
}

/** What a server tells in events; OpenAPI describes none of them. Errors: ``ApiError``, as it tells them. */
export async function* events<Told extends { name: string }>(
  path: string,
  request: object,
  signal: AbortSignal,
): AsyncGenerator<Told> {
  yield* toldBy<Told>(await call(path, post({ ...request, stream: true }, signal)), signal);
}

export async function* toldBy<Told extends { name: string }>(response: Response, signal: AbortSignal): AsyncGenerator<Told> {
  if (!response.body) throw new ApiError(0, "");
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let ended = false;
  for (;;) {
    const { value, done } = await reader.read().catch((error: unknown) => {
      if (signal.aborted) throw error;
      throw new ApiError(0, "");
    });
    if (done) break;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const event = parse(block);
      if (signal.aborted) return;
      if (!event) continue;
      if (event.name === "error") throw ApiError.told(500, event.data as ErrorBody); // its status was sent before
      ended ||= /(^|[.])done$/.test(event.name);
      yield event as unknown as Told;
    }
  }
  // The connection closed before the server said that it was done.
  if (!ended) throw new ApiError(0, "");
}

function parse(block: string): { name: string; data: unknown } | null {
  let name = "";
  let data = "";
  for (const line of block.split("\n")) {
    if (line.startsWith("event: ")) name = line.slice(7);
    else if (line.startsWith("data: ")) data += line.slice(6);
  }
  if (!data) return null;
  const told = JSON.parse(data);
  // An event of OpenAI's paths says within its data what it is.
  return { name: name || (told.type ?? "error"), data: told };
}
