// The server's API, typed as docs/serve.md and /docs describe it.

import type { Task } from "./address";

export interface Detected {
  language: string;
  confidence: number;
}

/** Characters of a text: the first, and the one behind the last; of the server in code points. */
export type Span = [number, number];

export interface Word {
  before: string;
  text: string;
  probability: number;
  first: number;
  count: number;
  /** The words of the source sentence that it comes from, where warnings were asked for. */
  source?: Span[];
}

/** Something that is doubtful about a translation. */
export interface Warning {
  code: "language" | "unknown" | "omitted" | "coverage" | "lost" | "repeated" | "cut_off" | "length";
  side: "source" | "target";
  begin: number;
  end: number;
  text: string;
  languages: string[];
  /** Of coverage: the share of the words of the source, from 0 to 1. */
  covered: number | null;
  message: string;
}

export interface Token {
  id: number;
  piece: string;
  log_probability: number;
}

export interface Hypothesis {
  text: string;
  score: number;
  log_probability: number;
  finished: boolean;
  words: Word[];
  tokens: Token[];
  warnings?: Warning[];
}

export interface Sentence {
  source: string;
  behind: string;
  hypotheses: Hypothesis[];
}

export interface Translation {
  text: string;
  source: string;
  target: string;
  run: string;
  detected?: Detected;
  before: string;
  sentences: Sentence[];
}

/** What a run has learned from. */
export interface Knowledge {
  notice: string;
  /** That it has hardly learned its task, where that is so. */
  verdict: string;
  pairs: number | null;
  words: number | null;
  commonest: string[];
  /** Words that nearly all of its training sources have at most. */
  longest: number | null;
  examples: string[];
  label_smoothing: number;
}

export interface RunInfo {
  name: string;
  task: Task;
  /** What it reads. */
  reads: "text" | "pictures" | "recordings";
  /** How it reads files, where it does. */
  takes: { rate?: number; words?: boolean; height?: number; width?: number; channels?: number } | null;
  /** Whether it can be looked into. */
  look: boolean;
  /** Whether figures can be made of it. */
  figures: boolean;
  source: string;
  target: string;
  precision: string;
  /** How many hypotheses its search keeps. */
  beam: number;
  knows: Knowledge;
}

export interface ServerInfo {
  version: string;
  runs: RunInfo[];
  key_required: boolean;
  characters: number;
  /** Most bytes of a recording to transcribe. */
  recording_bytes: number;
  /** Most seconds of sound of one request. */
  sound_seconds: number;
}

export interface Series {
  name: string;
  x: number[];
  y: number[];
}

export interface ChartData {
  title: string;
  x_label: string;
  y_label: string;
  log_y: boolean;
  log_x?: boolean;
  from_zero?: boolean;
  /** Each point by itself: they are no course of anything. */
  points?: boolean;
  marked_x: number | null;
  marked_as: string;
  series: Series[];
}

/** A score as it was computed, and how it is written. */
export interface ScoreView {
  name: string;
  value: number;
  called: string;
  times: number;
  digits: number;
  unit: string;
  test: string;
  signature: string;
}

export interface RunView {
  name: string;
  source: string;
  target: string;
  notice: string;
  facts: [string, string][];
  scores: ScoreView[];
  samples: { source: string; hypothesis: string; reference: string }[];
  charts: ChartData[];
  tables: { title: string; header: string[]; rows: (string | number)[][]; note: string }[];
  recipe: string;
  limits: string[];
}

export interface Request {
  text: string;
  run: string;
  source?: string;
  whole?: boolean;
  beam?: number;
  n_best?: number;
  alternatives?: boolean;
  prefix_tokens?: number[];
  warnings?: boolean;
}

export type Event =
  | { name: "start"; data: Translation }
  | { name: "draft"; data: { sentence: number; text: string } }
  | { name: "sentence"; data: { sentence: number; hypotheses: Hypothesis[] } }
  | { name: "warnings"; data: { sentence: number; warnings: Warning[]; words: Word[] } }
  | { name: "done"; data: { seconds: number } }
  | { name: "error"; data: ErrorBody };

/** The numbers and names that stand in the sentence of an error. */
export type Values = Record<string, number | string | string[]>;

/** Every error of the server; what a proxy answers in its place may have no code. */
export interface ErrorBody {
  /** Its sentence; of a path that is OpenAI's all that is told of it. */
  error: string | { message: string; code: string; values: Values };
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

export async function info(): Promise<ServerInfo> {
  return (await call("v1/info")).json();
}

export async function runView(name: string): Promise<RunView> {
  return (await call(`v1/runs/${encodeURIComponent(name)}`)).json();
}

export async function translate(request: Request, signal?: AbortSignal): Promise<Translation> {
  const answer = await (await call("v1/translate", post(request, signal))).json();
  return answer.translations[0];
}

/** The same, told sentence by sentence as it grows. */
export function stream(request: Request, signal: AbortSignal): AsyncGenerator<Event> {
  return events("v1/translate", request, signal);
}

/** What a server tells in events. */
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
      const event = parse<Told>(block);
      if (!event) continue;
      ended ||= /(^|[.])done$|^error$/.test(event.name);
      yield event;
    }
  }
  // The connection closed before the server said that it was done.
  if (!ended) throw new ApiError(0, "");
}

export type DocumentEvent =
  | { name: "progress"; data: { done: number; of: number } }
  | { name: "done"; data: { translatedFileUrl: string; warnings?: string[] } }
  | { name: "error"; data: ErrorBody };

/** How far the translation of a document is, and where it waits to be downloaded. */
export async function* translateDocument(
  file: File,
  source: string,
  target: string,
  signal: AbortSignal,
): AsyncGenerator<DocumentEvent> {
  const body = new FormData();
  body.set("source", source);
  body.set("target", target);
  body.set("stream", "true");
  body.set("file", file);
  yield* toldBy<DocumentEvent>(await call("translate_file", { method: "POST", body, signal }), signal);
}

function parse<Told>(block: string): Told | null {
  let name = "";
  let data = "";
  for (const line of block.split("\n")) {
    if (line.startsWith("event: ")) name = line.slice(7);
    else if (line.startsWith("data: ")) data += line.slice(6);
  }
  if (!data) return null;
  const told = JSON.parse(data);
  // An event of OpenAI's paths says within its data what it is.
  return { name: name || (told.type ?? "error"), data: told } as Told;
}
