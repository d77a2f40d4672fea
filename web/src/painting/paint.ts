// The API of a run that paints, typed as docs/serve.md and /docs describe it.

import { call, post } from "../page/api";

export interface WrittenCodes {
  rows: number;
  columns: number;
  codes: number[];
  /** Of each code, given those before it. */
  probabilities: number[];
  /** Of each code, how much it looked at each word of the caption; empty where a model has no attention. */
  attention: number[][];
}

export interface PaintedImage {
  b64_json: string;
  written: WrittenCodes;
}

export interface Painted {
  data: PaintedImage[];
  words: string[];
  /** Words that no caption of the training has. */
  unknown: string[];
}

/** Pictures of a caption. */
export const MOST_PICTURES = 4;
const SCALE = 4;

/** The body of a request: the most probable pictures, or with a seed such as are drawn. */
export function asked(prompt: string, model: string, seed: number | null): Record<string, unknown> {
  return { prompt, model, n: MOST_PICTURES, scale: SCALE, explain: true, ...(seed === null ? {} : { seed }) };
}

export async function paint(text: string, run: string, seed: number | null, signal: AbortSignal): Promise<Painted> {
  return await (await call("v1/images/generations", post(asked(text, run, seed), signal))).json();
}

/** How much each code looked at a word, as shares of the most that any did. */
export function shares({ attention }: WrittenCodes, word: number): number[] {
  const looked = attention.map((line) => line[word] ?? 0);
  const most = Math.max(...looked, Number.EPSILON);
  return looked.map((one) => one / most);
}

/** Where an arrow key leads from a patch; undefined where it leads nowhere. */
export function neighbour({ rows, columns }: WrittenCodes, from: number, key: string): number | undefined {
  const [row, column] = [Math.floor(from / columns), from % columns];
  const [down, across] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[key] ?? [0, 0];
  const to = [row + down!, column + across!] as const;
  const isInside = to[0] >= 0 && to[0] < rows && to[1] >= 0 && to[1] < columns;
  return isInside && (down || across) ? to[0] * columns + to[1] : undefined;
}
