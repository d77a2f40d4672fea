// What a run tells while it translates a text or a document.

import type { Hypothesis, TranslatedFile, Translation, TranslationWarning, Word } from "$openapi";

/** Characters of a text: the first, and the one behind the last; of the server in code points. */
export type Span = [number, number];

/** A translation, told sentence by sentence as it grows. */
export type Event =
  | { name: "start"; data: Translation }
  | { name: "draft"; data: { sentence: number; text: string } }
  | { name: "sentence"; data: { sentence: number; hypotheses: Hypothesis[] } }
  | { name: "warnings"; data: { sentence: number; warnings: TranslationWarning[]; words: Word[] } }
  | { name: "done"; data: { seconds: number } };

export type DocumentEvent =
  | { name: "progress"; data: { done: number; of: number } }
  | { name: "done"; data: TranslatedFile };
