// What is shown first of a new look: a layer, and a word.

import type { Looking, Part, Spot, Units } from "./look";

/** The word of the translation that looked at most words of the source: the most to be seen. Of a
 *  text that is only read its first blank, if it has one. */
export function widest(looking: Looking, units: Units): Spot | null {
  if (!looking.writes) {
    const blank = looking.answer.source_tokens.indexOf("<mask>");
    const unit = looking.units("source", units).findIndex((one) => one.first === blank);
    return unit < 0 ? null : { side: "source", unit };
  }
  const grid = looking.known("cross", clearest(looking, "cross"), null, units);
  if (!grid) return null;
  const words = looking.units("target", units);
  let [best, least] = [-1, Infinity];
  for (let r = 0; r < grid.rows; r++) {
    if (!/^\p{L}+$/u.test(words[r]?.text ?? "")) continue;
    const most = grid.values.subarray(r * grid.columns, (r + 1) * grid.columns).reduce((a, b) => Math.max(a, b), 0);
    if (most < least) [best, least] = [r, most];
  }
  return best < 0 ? null : { side: "target", unit: best };
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
