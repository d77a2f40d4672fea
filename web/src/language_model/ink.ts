// The colour of a surprise: none where a word was certain, and no deeper than text can be read on.

import type { Ink } from "../drawing/coloured_words";

/** Bits from which a colour is as deep as it gets. */
export const MOST = 16;
const DEEPEST = 42; // percent

export function ink(bits: number | null | undefined): Ink | null {
  if (bits == null) return null;
  return { of: "doubt", share: Math.round((Math.min(bits, MOST) / MOST) * DEEPEST) };
}
