// A search as a tree that grows from left to right: where its lines and letters stand. The page draws
// those that are in sight, a file holds all of them.

import { textWidth } from "../drawing/letters";
import { css, palette } from "../drawing/palette.svelte";
import type { Mark } from "../drawing/pictures";
import { preferences } from "../page/preferences.svelte";
import { pieceLabel } from "./look";
import type { Node } from "./search_tree";

const ROW = 25; // pixels
export const TOP = 24; // above a column, where its number stands
const PAD = 10;
const AROUND = 72; // of a column beside the piece: lines, and its probability
const NARROWEST = 84;
const WIDEST = 176;
const ROOT = 46; // least width before the first column
const ROOT_LETTERS = 22;
const [NUMBER, SHARE, LABEL, PIECE] = [11, 10.5, 12, 12.5]; // of letters

type Ink = "accent" | "ink" | "muted";
type Point = readonly [number, number];

export interface Tree {
  columns: Node[][];
  /** Of each column, which piece it chooses, counted from 0. */
  places: number[];
  /** What the search begins behind. */
  root: string;
}

export interface Size {
  /** Pixels before the first column, of a column, of all, and down. */
  root: number;
  column: number;
  width: number;
  height: number;
}

/** A line that leaves and arrives level. */
function line([x, y]: Point, [toX, toY]: Point, ink: Ink, alpha: number, isDashed = false): Mark {
  const middle = (x + toX) / 2;
  const d = `M${x} ${y}C${middle} ${y} ${middle} ${toY} ${toX} ${toY}`;
  const dashes: Record<string, string> = isDashed ? { "stroke-dasharray": "2 3" } : {};
  const stroke = css(palette.colours[ink], alpha);
  return { tag: "path", has: { d, fill: "none", stroke, "stroke-width": ink === "accent" ? 2 : 1, ...dashes } };
}

function letters([x, y]: Point, text: string, size: number, ink: Ink, weight = 400): Mark {
  const fill = css(palette.colours[ink]);
  return { tag: "text", text, has: { x, y, fill, "font-size": size, "font-weight": weight, "dominant-baseline": "central" } };
}

/** A piece as the tree shows it. */
export function nodeLabel(node: Node): string {
  if (node.outcome === "ended") return "</s>";
  return pieceLabel(node.piece, node.piece.startsWith("\u2581") ? 0 : 1);
}

/** The end of what was given, if that is long: it says where the search went on. */
export function rootLabel(text: string): string {
  return text.length > ROOT_LETTERS ? `… ${text.slice(-ROOT_LETTERS).replace(/^\S*\s+/, "")}` : text;
}

/** Columns as wide as the widest piece asks for, so that pieces are seen whole. */
export function sizeOf({ columns, root }: Tree): Size {
  const pieces = [...new Set(columns.flatMap((nodes) => nodes.map(nodeLabel)))];
  const widest = pieces.reduce((most, text) => Math.max(most, textWidth(text, PIECE, 600)), 0);
  const column = Math.ceil(Math.max(NARROWEST, Math.min(WIDEST, widest + AROUND)));
  const before = Math.ceil(Math.max(ROOT, PAD + textWidth(root, LABEL) + 30));
  const rows = columns.reduce((most, nodes) => Math.max(most, nodes.length), 1);
  return {
    root: before,
    column,
    width: before + columns.length * column + 12,
    height: rows * ROW + 2 * PAD + 18,
  };
}

/** The marks of the columns from `first` to before `last`; `step`: the column that is marked, from 1. */
export function marksOf({ columns, places, root }: Tree, size: Size, first: number, last: number, step: number | null): Mark[] {
  const x = (place: number): number => size.root + place * size.column;
  const y = (row: number): number => PAD + 18 + row * ROW + ROW / 2;
  const end = (place: number): number => x(place) + size.column - 4;
  const rootY = y(Math.max(0, columns[0]?.findIndex((node) => node.isBest) ?? 0));
  const lines: Mark[] = [];
  const names: Mark[] = [letters([PAD, rootY], root, LABEL, "muted")];

  function edge(i: number, row: number, { from, outcome, rank }: Node): void {
    const start: Point = i === 0 ? [size.root - 22, rootY] : [end(i - 1), y(Math.max(0, from))];
    const alpha = [0.13, 0.4, 1][rank] ?? 1;
    lines.push(line(start, [x(i) + 16, y(row)], rank === 2 ? "accent" : "ink", alpha, outcome === "dropped"));
  }

  function name(i: number, row: number, node: Node): void {
    const isBest = node.rank === 2;
    const weight = isBest ? 600 : 400;
    let text = nodeLabel(node);
    while (text.length > 2 && textWidth(text, PIECE, weight) > size.column - AROUND) text = `${text.slice(0, -2)}…`;
    const behind = x(i) + 20 + textWidth(text, PIECE, weight) + 5;
    const share = preferences.percent(Math.exp(node.log_probability));
    // Muted letters as they are have a contrast of 5:1; what was given up is told by dashes.
    const ink = (["muted", "ink", "accent"] as const)[node.rank];
    names.push(letters([x(i) + 20, y(row)], text, PIECE, ink, weight), letters([behind, y(row)], share, SHARE, "muted"));
    const from = behind + textWidth(share, SHARE) + 4;
    const goesOn = node.outcome === "kept" && node.rank > 0 && i < columns.length - 1;
    if (goesOn && from < end(i)) lines.push(line([from, y(row)], [end(i), y(row)], isBest ? "accent" : "ink", isBest ? 1 : 0.4));
  }

  for (let i = first; i < last; i++) {
    // What leads nowhere lies under what does, and the best above both.
    for (const rank of [0, 1, 2]) columns[i]?.forEach((node, row) => node.rank === rank && edge(i, row, node));
    names.push(letters([x(i) + 24, PAD + 4], preferences.number((places[i] ?? 0) + 1), NUMBER, i + 1 === step ? "accent" : "muted"));
    columns[i]?.forEach((node, row) => name(i, row, node));
  }
  return [...lines, ...names];
}
