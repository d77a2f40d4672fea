// Canvases that are as fine as the screen, and how wide a text is on them.

import { palette } from "./palette.svelte";

/** An empty canvas of so many pixels of the page, to be drawn on in these; null where it cannot be. */
export function cleared(canvas: HTMLCanvasElement | undefined, width: number, height: number): CanvasRenderingContext2D | null {
  const paper = canvas?.getContext("2d");
  if (!canvas || !paper || !width) return null;
  const scale = devicePixelRatio || 1;
  const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  }
  paper.setTransform(scale, 0, 0, scale, 0, 0);
  paper.clearRect(0, 0, width, height);
  return paper;
}

let measure: CanvasRenderingContext2D | null = null;

/** Pixels of a text in letters of the page. */
export function widthOf(text: string, size: number, weight = 400): number {
  measure ??= document.createElement("canvas").getContext("2d");
  if (!measure) return text.length * size * 0.6;
  measure.font = `${weight} ${size}px ${palette.colours.font}`;
  return measure.measureText(text).width;
}
