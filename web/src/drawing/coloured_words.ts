// Words that are coloured by a number, on the page and as a picture that is saved.

import { css, palette } from "./palette.svelte";
import { saved, shape, text } from "./pictures";

/** What lies behind a word. */
export interface Ink {
  of: "accent" | "doubt";
  /** Percent of the colour. */
  share: number;
}

export interface ColouredWord {
  /** What stands between it and the word before. */
  before: string;
  text: string;
  ink: Ink | null;
}

/** The ink as a background of the page. */
export function background(ink: Ink | null): string | null {
  return ink?.share ? `color-mix(in srgb, var(--${ink.of}) ${ink.share}%, transparent)` : null;
}

const [WIDTH, LINE, LETTERS, PAD, TOP] = [720, 28, 16, 10, 40]; // pixels

/** Running text under its title, line by line as the page sets it. */
export function wordsSvg(words: readonly ColouredWord[], title: string): string {
  const { colours } = palette;
  const measure = document.createElement("canvas").getContext("2d");
  if (measure) measure.font = `${LETTERS}px ${colours.font}`;
  const widthOf = (of: string): number => measure?.measureText(of).width ?? of.length * LETTERS * 0.5;
  const marks: SVGElement[] = [];
  let [x, line] = [PAD, 0];
  for (const { before, text: word, ink } of words) {
    const width = widthOf(word);
    const space = x > PAD ? widthOf(before.replaceAll("\n", " ")) : 0;
    const breaks = before.includes("\n") || (x > PAD && x + space + width > WIDTH - PAD);
    if (breaks && x > PAD) [x, line] = [PAD, line + 1];
    else x += space;
    const y = TOP + (line + 0.5) * LINE;
    if (ink?.share) {
      const place = { x: x - 1, y: y - 11, width: width + 2, height: 22, rx: 3 };
      marks.push(shape("rect", { ...place, fill: css(colours[ink.of]), "fill-opacity": ink.share / 100 }));
    }
    if (word) marks.push(text(word, { x, y: y + 5, "font-size": LETTERS }));
    x += width;
  }
  return saved(marks, { width: WIDTH, height: TOP + (line + 1) * LINE + PAD }, title);
}
