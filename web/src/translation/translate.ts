// Asks a run that translates, about a text or about a document.

import type { Hypothesis, TranslateRequest, TranslatedFile, Translation, TranslationWarning, Word } from "$openapi";
import { call, post } from "../page/api";

/** Characters of a text: the first, and the one behind the last; of the server in code points. */
export type Span = [number, number];

/** The same, told sentence by sentence as it grows. */
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

export type DocumentEvent =
  | { name: "progress"; data: { done: number; of: number } }
  | { name: "done"; data: TranslatedFile };
