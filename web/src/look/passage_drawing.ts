// Where words looked, drawn over both texts: ink behind words, curves between them.

import type { Part, Side, Spot } from "./look";
import type { Ink } from "./ask_look.svelte";
import type { Grid } from "../drawing/numbers";
import { css, palette } from "../drawing/palette.svelte";
import type { Mark } from "../drawing/pictures";

/** Where a word stands in its block of text. */
export interface Place {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** From a block's own coordinates to the drawing, and what of it is seen. */
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

export function marksOf(scene: Scene): Mark[] {
  const { ink, focus, all, isShort, places, views } = scene;
  if (!focus) return isShort && all ? everyCurve(scene, all) : [];
  const behind = ink ? inkOf(views[ink.side], places[ink.side], ink.weights) : [];
  const one = places[focus.side][focus.unit];
  const around = { fill: "none", stroke: css(palette.colours.accent), "stroke-width": 1.5 };
  const focused = one ? boxOf(views[focus.side], one, around) : [];
  if (!ink || !isShort || !one) return [...behind, ...focused];
  const curves = [...ink.weights].flatMap((weight, i) => {
    const other = places[ink.side][i];
    if (!other || weight < LEAST) return [];
    return [...(weight >= 0.2 ? leads(scene, ink.side, other) : []), curve(scene, [focus.side, one], [ink.side, other], weight)];
  });
  curves.push(...leads(scene, focus.side, one));
  return [...behind, ...focused, ...curves];
}

/** A box around a word, as far as it is seen. */
function boxOf({ x, y, top, bottom }: View, place: Place, has: Mark["has"]): Mark[] {
  const [from, to] = [Math.max(top, y + place.top + 1), Math.min(bottom, y + place.top + place.height - 1)];
  if (to <= from) return [];
  return [{ tag: "rect", has: { x: x + place.left - 1, y: from, width: place.width + 2, height: to - from, rx: 4, ...has } }];
}

function inkOf(view: View, places: Place[], weights: Float32Array): Mark[] {
  return [...weights].flatMap((weight, i) => {
    const place = places[i];
    return place && weight >= 0.004 ? boxOf(view, place, { fill: css(palette.colours.accent, weight * 0.62) }) : [];
  });
}

/** Where the curves of a text begin: below its last line, or above the first of the translation. */
function edgeOf({ places, views }: Scene, side: Side): number {
  const ends = places[side].map((place) => endOf(side, place));
  return views[side].y + (side === "source" ? Math.max(...ends) : Math.min(...ends));
}

/** The end of a word from which its curves leave. */
function endOf(side: Side, { top, height }: Place): number {
  return side === "source" ? top + height : top;
}

function middleOf({ views }: Scene, side: Side, { left, width }: Place): number {
  return views[side].x + left + width / 2;
}

/** From a word of an upper line down to the edge of its text, where its curve begins: thin, since it crosses others. */
function leads(scene: Scene, side: Side, place: Place): Mark[] {
  const [own, edge] = [scene.views[side].y + endOf(side, place), edgeOf(scene, side)];
  if (Math.abs(own - edge) < 2) return [];
  const d = `M${middleOf(scene, side, place)} ${own}V${edge}`;
  return [{ tag: "path", has: { d, fill: "none", stroke: css(palette.colours.accent, 0.5), "stroke-width": 1, "stroke-dasharray": "2 3" } }];
}

function curve(scene: Scene, [from, one]: [Side, Place], [to, other]: [Side, Place], weight: number, strength = 1): Mark {
  // Between the texts alone: from a word of an upper line it would run through those below.
  const [ax, ay] = [middleOf(scene, from, one), edgeOf(scene, from)];
  const [bx, by] = [middleOf(scene, to, other), edgeOf(scene, to)];
  // An arc into the space between the texts: down from the source, up from the translation.
  const turn = from === "source" ? 1 : -1;
  const depth = turn * Math.min(34, 12 + Math.abs(ax - bx) * 0.12);
  const middle = (ay + by) / 2;
  let d = `M${ax} ${ay}C${ax} ${middle} ${bx} ${middle} ${bx} ${by}`;
  if (from === to) d = `M${ax} ${ay}C${ax} ${ay + depth} ${bx} ${by + depth} ${bx} ${by}`;
  if (from === to && Math.abs(ax - bx) < 2) d = `M${ax - 5} ${ay}C${ax - 14} ${ay + turn * 20} ${ax + 14} ${ay + turn * 20} ${ax + 5} ${ay}`;
  const has = { d, fill: "none", stroke: css(palette.colours.accent, (0.12 + 0.75 * weight) * strength), "stroke-linecap": "round" };
  return { tag: "path", has: { ...has, "stroke-width": (0.6 + 3.2 * weight) * (strength < 1 ? 0.7 : 1) } };
}

/** Nothing in focus: what each word looked at, faintly, all at once. */
function everyCurve(scene: Scene, { grid, part }: { grid: Grid; part: Part }): Mark[] {
  const [from, to]: [Side, Side] =
    part === "encoder" ? ["source", "source"] : part === "cross" ? ["target", "source"] : ["target", "target"];
  const shift = part === "decoder" ? 1 : 0;
  return [...grid.values].flatMap((weight, i) => {
    const [one, other] = [scene.places[from][Math.floor(i / grid.columns)], scene.places[to][(i % grid.columns) - shift]];
    return weight >= 0.12 && one && other ? [curve(scene, [from, one], [to, other], weight, 0.45)] : [];
  });
}
