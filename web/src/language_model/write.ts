// The API of a language model, typed as docs/serve.md and /docs describe it.

import { call, events, post, type ErrorBody } from "../page/api";

export interface WrittenWord {
  before: string;
  text: string;
  /** −log2 of its probability; left out where the model had not read what stands there. */
  bits?: number;
}

export type Ending = "end" | "stop" | "longest";

export interface WriteRequest {
  text: string;
  run: string;
  longest: number;
  likeliest: boolean;
  sampling: { temperature: number; top_k: number; top_p: number; seed: number };
  stop: string[];
}

export type WriteEvent =
  | { name: "start"; data: { run: string; begin: string; given: number; context: number } }
  | { name: "text"; data: { text: string; first: number; words: WrittenWord[] } }
  | { name: "done"; data: { ending: Ending; written: number; seconds: number } }
  | { name: "error"; data: ErrorBody };

export interface Surprise {
  words: WrittenWord[];
  bits: number;
  end: number;
  perplexity: number;
  bits_per_byte: number;
}

/** A word that could come. */
export interface Continuation {
  before: string;
  /** Empty where the text would end. */
  text: string;
  probability: number;
  rest: string;
}

export interface Continuations {
  begin: string;
  continuations: Continuation[];
}

export function write(request: WriteRequest, signal: AbortSignal): AsyncGenerator<WriteEvent> {
  return events("v1/write", request, signal);
}

export async function surprise(text: string, run: string, signal: AbortSignal): Promise<Surprise> {
  return (await (await call("v1/surprisal", post({ text, run }, signal))).json()).texts[0];
}

export async function continuations(
  text: string,
  word: number,
  run: string,
  signal: AbortSignal,
): Promise<Continuations> {
  return (await call("v1/continuations", post({ text, word, run }, signal))).json();
}

/** The words of a text, as far as they are those of another that begins like it; the rest bare. */
export function kept(words: WrittenWord[], text: string): WrittenWord[] {
  const found: WrittenWord[] = [];
  let place = 0;
  for (const word of words) {
    const end = place + word.before.length + word.text.length;
    const isWhole = end === text.length || /\s/.test(text[end] ?? "");
    if (!isWhole || text.slice(place, end) !== word.before + word.text) break;
    found.push(word);
    place = end;
  }
  const rest = text.slice(place);
  const bare = rest.trimStart();
  return rest ? [...found, { before: rest.slice(0, rest.length - bare.length), text: bare }] : found;
}

export function joined(words: WrittenWord[]): string {
  return words.map((word) => word.before + word.text).join("");
}
