// Words in boxes with a name beside them, as a picture that is saved.

import { saved, shape, text } from "../drawing/pictures";
import { palette } from "../drawing/palette.svelte";

export interface Boxed {
  /** What stands between it and what is before. */
  before: string;
  text: string;
  /** Written beside it; empty: it has no box. */
  name: string;
  /** Of the box. */
  colour: string;
}

const [WIDTH, LINE, LETTERS, NAMES, PAD, TOP] = [720, 34, 16, 10, 10, 44]; // pixels

/** Running text under its title, line by line; a box that is too wide for what is left begins a line. */
export function boxedSvg(boxes: readonly Boxed[], title: string): string {
  const measure = document.createElement("canvas").getContext("2d");
  const widthOf = (of: string, size: number): number => {
    if (!measure) return of.length * size * 0.5;
    measure.font = `${size}px ${palette.colours.font}`;
    return measure.measureText(of).width;
  };
  const marks: SVGElement[] = [];
  let [x, line, widest] = [PAD, 0, WIDTH];
  for (const { before, text: word, name, colour } of boxes) {
    const letters = widthOf(word, LETTERS);
    const width = letters + (name ? widthOf(name, NAMES) + 18 : 0);
    const space = x > PAD ? widthOf(before.replaceAll("\n", " "), LETTERS) : 0;
    const breaks = before.includes("\n") || x + space + width > WIDTH - PAD;
    if (breaks && x > PAD) [x, line] = [PAD, line + 1];
    else x += space;
    const y = TOP + (line + 0.5) * LINE;
    if (name) {
      marks.push(shape("rect", { x, y: y - 13, width, height: 26, rx: 5, fill: colour, "fill-opacity": 0.18 }));
      marks.push(text(name, { x: x + letters + 11, y: y + 4, "font-size": NAMES, "font-weight": 600 }));
    }
    marks.push(text(word, { x: x + (name ? 5 : 0), y: y + 5, "font-size": LETTERS }));
    x += width;
    widest = Math.max(widest, x + PAD);
  }
  return saved(marks, { width: widest, height: TOP + (line + 1) * LINE + PAD }, title);
}
