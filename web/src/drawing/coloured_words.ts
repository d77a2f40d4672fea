// Words that are coloured by a number.

/** What lies behind a word: so many percent of a colour. */
export function background(of: "accent" | "doubt", share: number): string | null {
  return share ? `color-mix(in srgb, var(--${of}) ${share}%, transparent)` : null;
}

/** How a word is marked of which a model was less sure, or unsure: as style.css has it. */
export function doubt(probability: number): "" | "less" | "unsure" {
  if (probability < 0.5) return "unsure";
  return probability < 0.8 ? "less" : "";
}
