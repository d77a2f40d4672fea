// What a matrix looks like: how deep its colours are, and the numbers in its cells.

import type { Format } from "../page/format";
import type { Grid } from "./numbers";

/**
 * At most so many rows and columns: each new cell is the mean of a block, so that what is finer
 * than the screen turns grey and not into stripes that are not there.
 */
export function averaged(grid: Grid, rows: number, columns: number): Grid {
  const tall = Math.max(1, Math.ceil(grid.rows / Math.max(1, rows)));
  const wide = Math.max(1, Math.ceil(grid.columns / Math.max(1, columns)));
  if (tall === 1 && wide === 1) return grid;
  const small = { rows: Math.ceil(grid.rows / tall), columns: Math.ceil(grid.columns / wide) };
  const values = new Float32Array(small.rows * small.columns);
  const counts = new Uint16Array(values.length);
  for (let r = 0; r < grid.rows; r++) {
    const at = Math.floor(r / tall) * small.columns;
    for (let c = 0; c < grid.columns; c++) {
      const value = grid.values[r * grid.columns + c] as number;
      if (Number.isNaN(value)) continue;
      const place = at + Math.floor(c / wide);
      values[place] = (values[place] as number) + value;
      counts[place] = (counts[place] as number) + 1;
    }
  }
  values.forEach((sum, i) => (values[i] = counts[i] ? sum / (counts[i] as number) : NaN));
  return { ...small, values };
}

/** How much colour a number has, from 0 to 1; where the least is the best, most at 0. */
export function depth(value: number, reach: number, isLeastDeep: boolean): number {
  const share = Math.min(1, Math.abs(value) / reach);
  return isLeastDeep ? 1 - share : share;
}

/** Three digits at most. */
export function short(value: number, format: Format): string {
  const size = Math.abs(value);
  if (size < 0.005) return size ? "≈0" : "0";
  return format.number(value, size >= 100 || Number.isInteger(value) ? 0 : size >= 10 ? 1 : 2);
}

/** 1, 2, 5, 10, … not below. */
export function round(least: number): number {
  for (let step = 1; ; step *= 10) {
    for (const times of [1, 2, 5]) if (step * times >= least) return step * times;
  }
}
