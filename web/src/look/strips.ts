// Rows of numbers, a stroke for each: one ink above zero, another below.

import { csv } from "../drawing/pictures";

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

/** A row for each, its numbers behind its name, counted from 1. */
export function stripsCsv(rows: readonly StripRow[]): string {
  const longest = rows.reduce((most, { values }) => Math.max(most, values.length), 0);
  const header = ["", ...Array.from({ length: longest }, (_, i) => i + 1)];
  return csv([header, ...rows.map(({ name, values }) => [name, ...Array.from(values, (value) => Number(value.toPrecision(6)))])]);
}
