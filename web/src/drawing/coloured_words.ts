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
