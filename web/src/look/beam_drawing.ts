// A search as a tree that grows from left to right: where its lines and letters stand. The page draws
// those that are in sight, a file holds all of them.

import { pieceLabel } from "./look";
import type { Node } from "./search_tree";

export const ROW = 25; // pixels
export const TOP = 24; // above a column, where its number stands
const PAD = 10;
const AROUND = 72; // of a column beside the piece: lines, and its probability
const NARROWEST = 84;
const WIDEST = 176;
const ROOT = 46; // least width before the first column
const ROOT_LETTERS = 22;
const [NUMBER, SHARE, LABEL, PIECE] = [11, 10.5, 12, 12.5]; // of letters

export type Ink = "accent" | "ink" | "muted";

/** A line, or a curve that leaves and arrives level. */
export interface Line {
  from: readonly [number, number];
  to: readonly [number, number];
  ink: Ink;
  alpha: number;
  width: number;
  isDashed: boolean;
}

export interface Letters {
  at: readonly [number, number];
  text: string;
  size: number;
  weight: number;
  ink: Ink;
}

export interface Marks {
  lines: Line[];
  letters: Letters[];
}

/** What is drawn, and how its numbers are written. */
export interface Tree {
  columns: Node[][];
  /** Of each node, whether it still leads somewhere. */
  alive: boolean[][];
  /** What stands above each column, its place counted from 1. */
  numbers: string[];
  /** What the search begins behind. */
  root: string;
  percent: (share: number) => string;
  /** Pixels of a text. */
  widthOf: (text: string, size: number, weight: number) => number;
}

export interface Size {
  /** Pixels before the first column, of a column, of all, and down. */
  root: number;
  column: number;
  width: number;
  height: number;
}

/** What a line is as a path: it leaves and arrives level. */
export function pathOf({ from, to }: Line): string {
  const middle = (from[0] + to[0]) / 2;
  return `M${from.join(" ")}C${middle} ${from[1]} ${middle} ${to[1]} ${to.join(" ")}`;
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
export function sizeOf({ columns, root, widthOf }: Pick<Tree, "columns" | "root" | "widthOf">): Size {
  const pieces = [...new Set(columns.flatMap((nodes) => nodes.map(nodeLabel)))];
  const widest = pieces.reduce((most, text) => Math.max(most, widthOf(text, PIECE, 600)), 0);
  const column = Math.ceil(Math.max(NARROWEST, Math.min(WIDEST, widest + AROUND)));
  const before = Math.ceil(Math.max(ROOT, PAD + widthOf(root, LABEL, 400) + 30));
  const rows = columns.reduce((most, nodes) => Math.max(most, nodes.length), 1);
  return {
    root: before,
    column,
    width: before + columns.length * column + 12,
    height: rows * ROW + 2 * PAD + 18,
  };
}

/** The marks of the columns from `first` to before `last`; `step`: the column that is marked, from 1. */
export function marksOf(tree: Tree, size: Size, first: number, last: number, step: number | null): Marks {
  const { columns, alive, numbers, percent, widthOf } = tree;
  const x = (place: number): number => size.root + place * size.column;
  const y = (row: number): number => PAD + 18 + row * ROW + ROW / 2;
  const rootY = y(Math.max(0, columns[0]?.findIndex((node) => node.isBest) ?? 0));
  const lines: Line[] = [];
  const letters: Letters[] = [
    { at: [PAD, rootY], text: tree.root, size: LABEL, weight: 400, ink: "muted" },
  ];

  function edge(i: number, row: number, node: Node, rank: number): void {
    lines.push({
      from: i === 0 ? [size.root - 22, rootY] : [x(i - 1) + size.column - 4, y(Math.max(0, node.from))],
      to: [x(i) + 16, y(row)],
      ink: rank === 2 ? "accent" : "ink",
      alpha: [0.13, 0.4, 1][rank] ?? 1,
      width: rank === 2 ? 2 : 1,
      isDashed: node.outcome === "dropped",
    });
  }

  function name(i: number, row: number, node: Node): void {
    const lives = alive[i]?.[row] ?? false;
    const isBest = node.isBest && lives;
    const weight = isBest ? 600 : 400;
    let text = nodeLabel(node);
    while (text.length > 2 && widthOf(text, PIECE, weight) > size.column - AROUND) text = `${text.slice(0, -2)}…`;
    // Muted letters as they are have a contrast of 5:1; what was given up is told by dashes.
    letters.push({ at: [x(i) + 20, y(row)], text, size: PIECE, weight, ink: isBest ? "accent" : lives ? "ink" : "muted" });
    const behind = x(i) + 20 + widthOf(text, PIECE, weight) + 5;
    const share = percent(Math.exp(node.log_probability));
    letters.push({ at: [behind, y(row)], text: share, size: SHARE, weight: 400, ink: "muted" });
    const end = behind + widthOf(share, SHARE, 400) + 4;
    const goesOn = node.outcome === "kept" && lives && i < columns.length - 1;
    if (goesOn && end < x(i) + size.column - 4) {
      const [ink, alpha, width] = isBest ? (["accent", 1, 2] as const) : (["ink", 0.4, 1] as const);
      lines.push({ from: [end, y(row)], to: [x(i) + size.column - 4, y(row)], ink, alpha, width, isDashed: false });
    }
  }

  for (let i = first; i < last; i++) {
    // What leads nowhere lies under what does, and the best above both.
    for (const pass of [0, 1, 2]) {
      columns[i]?.forEach((node, row) => {
        const lives = alive[i]?.[row] ?? false;
        const rank = node.isBest && lives ? 2 : lives ? 1 : 0;
        if (rank === pass) edge(i, row, node, rank);
      });
    }
    const ink = i + 1 === step ? "accent" : "muted";
    letters.push({ at: [x(i) + 24, PAD + 4], text: numbers[i] ?? "", size: NUMBER, weight: 400, ink });
    columns[i]?.forEach((node, row) => name(i, row, node));
  }
  return { lines, letters };
}
