// Asks a run that translates, about a text or about a document.

import type { Hypothesis, TranslateRequest, TranslatedFile, Translation, TranslationWarning, Word } from "$openapi";
import { call, events, post, toldBy } from "../page/api";

/** Characters of a text: the first, and the one behind the last; of the server in code points. */
export type Span = [number, number];

export type Event =
  | { name: "start"; data: Translation }
  | { name: "draft"; data: { sentence: number; text: string } }
  | { name: "sentence"; data: { sentence: number; hypotheses: Hypothesis[] } }
  | { name: "warnings"; data: { sentence: number; warnings: TranslationWarning[]; words: Word[] } }
  | { name: "done"; data: { seconds: number } };

export async function translate(request: TranslateRequest, signal?: AbortSignal): Promise<Translation> {
  const answer = await (await call("v1/translate", post(request, signal))).json();
  return answer.translations[0];
}

/** The same, told sentence by sentence as it grows. */
export function stream(request: TranslateRequest, signal: AbortSignal): AsyncGenerator<Event> {
  return events("v1/translate", request, signal);
}

export type DocumentEvent =
  | { name: "progress"; data: { done: number; of: number } }
  | { name: "done"; data: TranslatedFile };

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
