// Words that are coloured by a number.

/** What lies behind a word. */
export interface Ink {
  of: "accent" | "doubt";
  /** Percent of the colour. */
  share: number;
}

/** The ink as a background of the page. */
export function background(ink: Ink | null): string | null {
  return ink?.share ? `color-mix(in srgb, var(--${ink.of}) ${ink.share}%, transparent)` : null;
}

/** How a word is marked of which a model was less sure, or unsure: as style.css has it. */
export function doubt(probability: number): "" | "less" | "unsure" {
  if (probability < 0.5) return "unsure";
  return probability < 0.8 ? "less" : "";
}
