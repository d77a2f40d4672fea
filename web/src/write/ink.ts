// The colour of a surprise: none where a word was certain, and no deeper than text can be read on.

/** Bits from which a colour is as deep as it gets. */
export const MOST = 16;
const DEEPEST = 42; // percent

export function ink(bits: number | undefined): string | null {
  if (bits === undefined) return null;
  const share = Math.round((Math.min(bits, MOST) / MOST) * DEEPEST);
  return share ? `color-mix(in srgb, var(--doubt) ${share}%, transparent)` : null;
}
