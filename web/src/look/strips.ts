// Rows of numbers, a stroke for each: one ink above zero, another below.

import { css, palette } from "../drawing/palette.svelte";
import { csv, saved, shape, text } from "../drawing/pictures";

export interface StripRow {
  name: string;
  /** What else is known of it: its size, the word that it is of. */
  told: string;
  values: Float32Array;
  /** The size that has the deepest colour. */
  reach: number;
}

/** The greatest size of some numbers; 1 where all are 0. */
export function greatest(values: Float32Array): number {
  return values.reduce((most, value) => Math.max(most, Math.abs(value)), 0) || 1;
}

const [LEFT, ROW, TOP, STROKES, RIGHT] = [240, 30, 34, 512, 140]; // pixels

export function stripsSvg(rows: readonly StripRow[], title: string): string {
  const [plus, minus] = palette.colours.series;
  const marks = rows.flatMap(({ name, told, values, reach }, r) => {
    const y = TOP + r * ROW;
    const wide = STROKES / Math.max(1, values.length);
    const strokes = [...values].map((value, i) =>
      shape("rect", {
        x: Number((LEFT + i * wide).toFixed(2)),
        y,
        width: Number(wide.toFixed(2)),
        height: ROW - 8,
        fill: css(value > 0 ? plus : minus),
        "fill-opacity": Number(Math.min(1, Math.abs(value) / reach).toFixed(3)),
      }),
    );
    const at = y + ROW / 2;
    return [text(name, { x: LEFT - 10, y: at, "text-anchor": "end" }), ...strokes, text(told, { x: LEFT + STROKES + 10, y: at })];
  });
  return saved(marks, { width: LEFT + STROKES + RIGHT, height: TOP + rows.length * ROW + 6 }, title);
}

/** A row for each, its numbers behind its name, counted from 1. */
export function stripsCsv(rows: readonly StripRow[]): string {
  const longest = rows.reduce((most, { values }) => Math.max(most, values.length), 0);
  const header = ["", ...Array.from({ length: longest }, (_, i) => i + 1)];
  return csv([header, ...rows.map(({ name, values }) => [name, ...Array.from(values, (value) => Number(value.toPrecision(6)))])]);
}
