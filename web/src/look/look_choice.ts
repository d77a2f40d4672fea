// What is shown first of a new look: a layer, a head of it, and a word.

import { greatest, rowOf, type Grid } from "../drawing/numbers";
import type { Looking, Part, Side, Spot, Units } from "./look";

/** The most that each row looks at anything. */
function surely(grid: Grid): number[] {
  return Array.from({ length: grid.rows }, (_, row) => greatest(rowOf(grid, row)));
}

/** How surely a head looks at one word, or the heads of a layer together do. */
function sureness(looking: Looking, part: Part, layer: number, head: number | null): number {
  const grid = looking.known({ part, layer, head }, "words");
  return grid ? surely(grid).reduce((sum, most) => sum + most, 0) : 0;
}

/** The word that looked at most others: the most to be seen. It is one of what was written, or of
 *  a text that is only read; of a text with blanks it is the first blank. Where nothing looks at
 *  anything it is the first word. */
export function widest(looking: Looking, units: Units): Spot | null {
  const side: Side = looking.writes ? "target" : "source";
  const words = looking.units(side, units);
  const blank = looking.answer.source_tokens.indexOf("<mask>");
  if (side === "source" && blank >= 0) {
    return { side, unit: words.findIndex(({ first, count }) => first <= blank && blank < first + count) };
  }
  // Of a tree, where no word stands by itself, a bracket that opens: another could stand there.
  const named = [/^\p{L}+$/u, /^\(\p{L}/u, /^[^<]*\p{L}/u].find((shape) => words.some((word) => shape.test(word.text)));
  const own: Part = looking.writes ? "decoder" : "encoder";
  const part = looking.layers("cross") ? "cross" : own;
  const grid = looking.layers(part) ? looking.known({ part, layer: clearest(looking, part), head: null }, units) : null;
  if (!grid) return looking.parts.length || !words.length ? null : { side, unit: 0 };
  const least = surely(grid).map((most, unit) => (named?.test(words[unit]?.text ?? "") ? most : Infinity));
  const unit = least.indexOf(Math.min(...least));
  return named ? { side, unit } : null;
}

/** The head of a layer that looks most surely at one word, of those that are on; null for a long text: their mean. */
export function surest(looking: Looking, part: Part, layer: number): number | null {
  if (!looking.isWhole) return null;
  const sure = (head: number): number => sureness(looking, part, layer, head);
  return looking.on(part, layer).sort((a, b) => sure(b) - sure(a))[0] ?? null;
}

/** The layer whose heads together look most surely at one word; the last of a long text. */
export function clearest(looking: Looking, part: Part): number {
  const sure = Array.from({ length: looking.layers(part) }, (_, layer) => sureness(looking, part, layer, null));
  return looking.isWhole ? sure.indexOf(Math.max(...sure)) : sure.length - 1;
}
