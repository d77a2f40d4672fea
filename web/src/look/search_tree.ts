// The steps of a search as a tree: who continues whom, what won, and what still leads somewhere.

import type { Candidate, LookAnswer } from "./look";

export interface Node extends Candidate {
  /** Row in the column before that it continues; -1 is the root. */
  from: number;
  isBest: boolean;
  /** 0: it leads nowhere; 1: it leads somewhere; 2: to what won. */
  rank: 0 | 1 | 2;
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
    const column = candidates.map((candidate, row): Node => {
      const from = before ? (kept[candidate.parent] ?? -1) : -1;
      const continuesBest = i === 0 || (bestRow >= 0 && from === bestRow);
      const isRight = wanted === undefined ? candidate.outcome === "ended" : candidate.id === wanted;
      const isBest = found < 0 && continuesBest && isRight;
      if (isBest) found = row;
      return { ...candidate, from, isBest, rank: 0 };
    });
    bestRow = found;
    out.push(column);
  });
  return out;
}

/** The tree when the search stands at `step`, counted from 1: only there it is known what leads somewhere. */
export function grownTo(columns: Node[][], step: number): Node[][] {
  const grown = columns.slice(0, step);
  let leading = new Set(grown.at(-1)?.flatMap((node, row) => (node.outcome === "kept" ? [row] : [])));
  for (let i = grown.length - 1; i >= 0; i--) {
    const column = grown[i]?.map((node, row): Node => {
      const lives = node.outcome === "ended" || leading.has(row);
      return { ...node, rank: !lives ? 0 : node.isBest ? 2 : 1 };
    });
    grown[i] = column ?? [];
    leading = new Set(column?.filter((node) => node.rank).map((node) => node.from));
  }
  return grown;
}
