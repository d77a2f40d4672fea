// What is shown first of a new look: a layer, and a word.

import type { Looking, Part, Side, Spot, Units } from "./look";

/** The word that looked at most others: the most to be seen. It is one of what was written, or of
 *  a text that is only read; of a text with blanks it is the first blank. Where nothing looks at
 *  anything it is the first word. */
export function widest(looking: Looking, units: Units): Spot | null {
  const side: Side = looking.writes ? "target" : "source";
  const words = looking.units(side, units);
  const blank = looking.answer.source_tokens.indexOf("<mask>");
  if (side === "source" && blank >= 0) {
    return { side, unit: words.findIndex((one) => one.first <= blank && blank < one.first + one.count) };
  }
  // Of a tree, where no word stands by itself, a bracket that opens: another could stand there.
  const named = [/^\p{L}+$/u, /^\(\p{L}/u, /^[^<]*\p{L}/u].find((shape) => words.some((word) => shape.test(word.text)));
  const own: Part = looking.writes ? "decoder" : "encoder";
  const part = looking.layers("cross") ? "cross" : own;
  const grid = looking.layers(part) ? looking.known(part, clearest(looking, part), null, units) : null;
  if (!grid) {
    return looking.parts.length || !words.length ? null : { side, unit: 0 };
  }
  let [best, least] = [-1, Infinity];
  for (let r = 0; r < grid.rows; r++) {
    if (!named?.test(words[r]?.text ?? "")) continue;
    const most = grid.values.subarray(r * grid.columns, (r + 1) * grid.columns).reduce((a, b) => Math.max(a, b), 0);
    if (most < least) [best, least] = [r, most];
  }
  return best < 0 ? null : { side, unit: best };
}

/** The head of a layer that looks most surely at one word, of those that are on; null for a long text: their mean. */
export function surest(looking: Looking, part: Part, layer: number): number | null {
  if (!looking.isWhole) return null;
  const sure = (head: number): number => {
    const grid = looking.known(part, layer, head, "words");
    if (!grid) return 0;
    const rows = Array.from({ length: grid.rows }, (_, r) => grid.values.subarray(r * grid.columns, (r + 1) * grid.columns));
    return rows.reduce((sum, row) => sum + Math.max(...row), 0);
  };
  return looking.on(part, layer).sort((a, b) => sure(b) - sure(a))[0] ?? null;
}

/** The layer whose heads together look most surely at one word; the last of a long text. */
export function clearest(looking: Looking, part: Part): number {
  let best = looking.layers(part) - 1;
  if (!looking.isWhole) return best;
  let most = -1;
  for (let layer = 0; layer < looking.layers(part); layer++) {
    const grid = looking.known(part, layer, null, "words");
    if (!grid) continue;
    let sum = 0;
    for (let r = 0; r < grid.rows; r++) {
      sum += grid.values.subarray(r * grid.columns, (r + 1) * grid.columns).reduce((a, b) => Math.max(a, b), 0);
    }
    if (sum > most) [best, most] = [layer, sum];
  }
  return best;
}
