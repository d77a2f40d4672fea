// Cases by chance that are the same in every run.

/** Numbers in [0, 1) after Marsaglia's xorshift. */
function random(seed: number): () => number {
  let state = (seed + 1) * 2654435761;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
}

export interface Chance {
  below(most: number): number;
  of<T>(values: readonly T[]): T;
  list<T>(most: number, make: () => T): T[];
}

/** `count` cases, each with its own chance. */
export function cases(count: number): Chance[] {
  return Array.from({ length: count }, (_, seed) => {
    const next = random(seed);
    const below = (most: number): number => Math.floor(next() * most);
    return {
      below,
      of: <T,>(values: readonly T[]) => values[below(values.length)] as T,
      list: <T,>(most: number, make: () => T) => Array.from({ length: below(most + 1) }, make),
    };
  });
}

/** Letters that are easily mangled: outside the basic plane, joined, with a meaning in addresses and in HTML. */
export const ODD = [..."aZ 0éß한국.,?&=#+%/<>\"'\n", "👩‍👩‍👧", "𝄞", "é", "\u2581", "ﬁ"];
