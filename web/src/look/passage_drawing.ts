// Where words looked, drawn over both texts: ink behind words, curves between them.

import type { Part, Side, Spot } from "./look";
import type { Ink } from "./ask_look.svelte";
import type { Grid } from "../drawing/numbers";
import { css, palette } from "../drawing/palette.svelte";
import type { Paper } from "./svg_paper";

/** Where a word stands in its block of text. */
export interface Place {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** From a block's own coordinates to the paper, and what of it is seen. */
export interface View {
  x: number;
  y: number;
  top: number;
  bottom: number;
}

export interface Scene {
  ink: Ink | null;
  focus: Spot | null;
  /** What every word looked at, where none is in focus. */
  all: { grid: Grid; part: Part } | null;
  /** Whether there is room for curves. */
  isShort: boolean;
  places: Record<Side, Place[]>;
  views: Record<Side, View>;
}

const LEAST = 0.03;

export function paint(paper: Paper, scene: Scene): void {
  const { ink, focus, all, isShort, places, views } = scene;
  if (!focus) {
    if (isShort && all) drawAll(paper, scene, all);
    return;
  }
  if (ink) drawInk(paper, views[ink.side], places[ink.side], ink.weights);
  const one = places[focus.side][focus.unit];
  drawFocus(paper, views[focus.side], one);
  if (!ink || !isShort || !one) return;
  ink.weights.forEach((weight, i) => {
    const other = places[ink.side][i];
    if (other && weight >= LEAST) curve(paper, scene, [focus.side, one], [ink.side, other], weight);
  });
}

function drawInk(paper: Paper, { x, y, top, bottom }: View, places: Place[], weights: Float32Array): void {
  paper.save();
  paper.beginPath();
  paper.rect(x - 6, top, 10_000, bottom - top);
  paper.clip();
  const { accent } = palette.colours;
  weights.forEach((weight, i) => {
    const place = places[i];
    if (!place || weight < 0.004) return;
    const at = y + place.top;
    if (at > bottom || at + place.height < top) return;
    paper.fillStyle = css(accent, weight * 0.62);
    rounded(paper, x + place.left - 1, at + 1, place.width + 2, place.height - 2);
    paper.fill();
  });
  paper.restore();
}

function drawFocus(paper: Paper, { x, y, top, bottom }: View, place: Place | undefined): void {
  if (!place || y + place.top > bottom || y + place.top + place.height < top) return;
  paper.strokeStyle = css(palette.colours.accent);
  paper.lineWidth = 1.5;
  rounded(paper, x + place.left - 1, y + place.top + 1, place.width + 2, place.height - 2);
  paper.stroke();
}

function rounded(paper: Paper, x: number, y: number, w: number, h: number): void {
  paper.beginPath();
  paper.roundRect(x, y, w, h, 4);
}

function curve(
  paper: Paper, { places, views }: Scene,
  [from, one]: [Side, Place], [to, other]: [Side, Place],
  weight: number, strength = 1,
): void {
  // Between the texts alone: from a word of an upper line it would run through those below.
  const end = (side: Side, place: Place): [number, number] => {
    const ends = places[side].map((one) => (side === "source" ? one.top + one.height : one.top));
    const edge = side === "source" ? Math.max(...ends) : Math.min(...ends);
    return [views[side].x + place.left + place.width / 2, views[side].y + edge];
  };
  const [ax, ay] = end(from, one);
  const [bx, by] = end(to, other);
  paper.strokeStyle = css(palette.colours.accent, (0.12 + 0.75 * weight) * strength);
  paper.lineWidth = (0.6 + 3.2 * weight) * (strength < 1 ? 0.7 : 1);
  paper.lineCap = "round";
  paper.beginPath();
  if (from === to) {
    // An arc into the space between the texts: down from the source, up from the translation.
    const turn = from === "source" ? 1 : -1;
    const depth = turn * Math.min(34, 12 + Math.abs(ax - bx) * 0.12);
    if (Math.abs(ax - bx) < 2) {
      paper.moveTo(ax - 5, ay);
      paper.bezierCurveTo(ax - 14, ay + turn * 20, ax + 14, ay + turn * 20, ax + 5, ay);
    } else {
      paper.moveTo(ax, ay);
      paper.bezierCurveTo(ax, ay + depth, bx, by + depth, bx, by);
    }
  } else {
    const middle = (ay + by) / 2;
    paper.moveTo(ax, ay);
    paper.bezierCurveTo(ax, middle, bx, middle, bx, by);
  }
  paper.stroke();
}

/** Nothing in focus: what each word looked at, faintly, all at once. */
function drawAll(paper: Paper, scene: Scene, { grid, part }: { grid: Grid; part: Part }): void {
  const [from, to]: [Side, Side] =
    part === "encoder" ? ["source", "source"] : part === "cross" ? ["target", "source"] : ["target", "target"];
  const shift = part === "decoder" ? 1 : 0;
  for (let r = 0; r < grid.rows; r++) {
    for (let c = shift; c < grid.columns; c++) {
      const weight = grid.values[r * grid.columns + c] ?? 0;
      const one = scene.places[from][r];
      const other = scene.places[to][c - shift];
      if (weight >= 0.12 && one && other) curve(paper, scene, [from, one], [to, other], weight, 0.45);
    }
  }
}
