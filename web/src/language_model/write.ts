// What a language model tells while it writes, and the words of its text.

import type { TextWord, WriteAnswer } from "$openapi";
import { background } from "../drawing/coloured_words";

export type Ending = WriteAnswer["ending"];

export type WriteEvent =
  | { name: "start"; data: { run: string; begin: string; given: number; context: number } }
  | { name: "text"; data: { text: string; first: number; words: TextWord[] } }
  | { name: "done"; data: { ending: Ending; written: number; seconds: number } };

/** The words of a text, as far as they are those of another that begins like it; the rest bare. */
export function kept(words: TextWord[], text: string): TextWord[] {
  const found: TextWord[] = [];
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
  return rest ? [...found, { before: rest.slice(0, rest.length - bare.length), text: bare, bits: null }] : found;
}

export function joined(words: TextWord[]): string {
  return words.map((word) => word.before + word.text).join("");
}

/** Bits from which a colour is as deep as it gets. */
export const MOST = 16;
const DEEPEST = 42; // percent

/** The colour of a surprise: none where a word was certain, and no deeper than text can be read on. */
export function ink(bits: number | null | undefined): string | null {
  if (bits == null) return null;
  return background("doubt", Math.round((Math.min(bits, MOST) / MOST) * DEEPEST));
}
