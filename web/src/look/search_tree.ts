// The steps of a search as a tree: who continues whom, what won, and what still leads somewhere.

import type { Candidate, LookAnswer } from "./look";

export interface Node extends Candidate {
  /** Row in the column before that it continues; -1 is the root. */
  from: number;
  isBest: boolean;
}

/** A column for each step; `best` are the tokens of the translation that won. */
export function columnsOf(steps: LookAnswer["steps"], best: number[]): Node[][] {
  const out: Node[][] = [];
  let bestRow = -1;
  steps.forEach(({ place, candidates }, i) => {
    const before = out[i - 1];
    const kept = before?.flatMap((node, row) => (node.outcome === "kept" ? [row] : [])) ?? [];
    const wanted = best[place];
    let found = -1;
    const column = candidates.map((candidate, row) => {
      const from = before ? (kept[candidate.parent] ?? -1) : -1;
      const continuesBest = i === 0 || (bestRow >= 0 && from === bestRow);
      const isRight = wanted === undefined ? candidate.outcome === "ended" : candidate.id === wanted;
      const isBest = found < 0 && continuesBest && isRight;
      if (isBest) found = row;
      return { ...candidate, from, isBest };
    });
    bestRow = found;
    out.push(column);
  });
  return out;
}

/** Which nodes still lead somewhere when the search stands at `step`, counted from 1. */
export function aliveAt(columns: Node[][], step: number): boolean[][] {
  const out = columns.slice(0, step).map((column) => column.map((node) => node.outcome === "ended"));
  const last = out[step - 1];
  columns[step - 1]?.forEach((node, row) => {
    if (last && node.outcome !== "dropped") last[row] = true;
  });
  for (let i = step - 1; i > 0; i--) {
    columns[i]?.forEach((node, row) => {
      const before = out[i - 1];
      if (out[i]?.[row] && before && node.from >= 0) before[node.from] = true;
    });
  }
  return out;
}
