// How much room letters need.

import { palette } from "./palette.svelte";

let paper: CanvasRenderingContext2D | null = null;

/** The width of a text in the font of the page, in pixels. */
export function textWidth(text: string, size: number, weight = 400): number {
  paper ??= document.createElement("canvas").getContext("2d");
  if (!paper) return text.length * size * 0.6;
  paper.font = `${weight} ${size}px ${palette.colours.font}`;
  return paper.measureText(text).width;
}
