// Two sentences that differ in one word, and the head whose attention moves with it.

import type { Looking } from "../look/look";
import { textWidth } from "./letters";
import { greatest, rowOf } from "./numbers";

export interface Pair {
  texts: [string, string];
  /** The words that differ. */
  words: [string, string];
  /** What stands before them, from the word that is in question on. */
  before: string;
}

/** The first two of some texts that differ in one word; null if none do. */
export function pairOf(examples: readonly string[]): Pair | null {
  for (const [i, one] of examples.entries()) {
    for (const other of examples.slice(i + 1)) {
      const [mine, theirs] = [one.split(" "), other.split(" ")];
      const places = mine.flatMap((word, k) => (word === theirs[k] ? [] : [k]));
      const at = places[0];
      if (mine.length !== theirs.length || places.length !== 1 || at === undefined) continue;
      const bare = (word = ""): string => word.replace(/\p{P}+$/u, "");
      return { texts: [one, other], words: [bare(mine[at]), bare(theirs[at])], before: `… ${mine.slice(Math.max(0, at - 4), at).join(" ")}` };
    }
  }
  return null;
}

/** A word, and the word that a head of the encoder lets it look at most in each of two sentences. */
export interface Jump {
  layer: number;
  head: number;
  row: number;
  /** What is looked at, and how much. */
  to: [number, number];
  weights: [number, number];
}

/** Of all heads and words the surest in both sentences that looks at another word in each; or one that looks at the word
 *  that was changed, if it is twice as sure. Null if there is none. */
export function arcOf(one: Looking, other: Looking): Jump | null {
  const [words, others] = [one, other].map((looking) => looking.units("source", "words"));
  const changed = words?.findIndex(({ text }, i) => text !== others?.[i]?.text);
  let best: Jump | null = null;
  let surest = 0;
  for (let layer = 0; layer < one.layers("encoder"); layer++) {
    for (let head = 0; head < one.heads("encoder"); head++) {
      const [a, b] = [one, other].map((looking) => looking.known({ part: "encoder", layer, head }, "words"));
      if (!a || !b || a.rows !== b.rows) continue;
      for (let row = 0; row < a.rows - 1; row++) {
        const [mine, theirs] = [rowOf(a, row), rowOf(b, row)];
        const weights: [number, number] = [greatest(mine), greatest(theirs)];
        const to: [number, number] = [mine.indexOf(weights[0]), theirs.indexOf(weights[1])];
        const isAway = to.every((place) => place !== changed);
        const sure = Math.min(...weights) * (isAway ? 2 : 1);
        const fits = to.every((place) => place !== row && place < a.rows - 1) && (to[0] !== to[1] || !isAway);
        if (fits && sure > surest) [best, surest] = [{ layer, head, row, to, weights }, sure];
      }
    }
  }
  return best;
}

/** Words on one line: the middle of each, and how wide all are, in pixels. */
export function laid(texts: readonly string[], size = 15, gap = 16): { at: number[]; width: number } {
  let x = 8;
  const at = texts.map((text) => {
    const width = textWidth(text, size, 600);
    x += width + gap;
    return x - gap - width / 2;
  });
  return { at, width: x };
}
