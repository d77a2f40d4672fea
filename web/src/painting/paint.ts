// The API of a run that paints, typed as docs/serve.md and /docs describe it.

import type { ImagesAnswer, ImagesRequest, PaintedImage, WrittenCodes } from "$openapi";
import { call, post, type With } from "../page/api";

export type Painted = With<ImagesAnswer, "words" | "unknown"> & { data: With<PaintedImage, "written">[] };

/** Pictures of a caption. */
export const MOST_PICTURES = 4;
const SCALE = 4;

/** The body of a request: the most probable pictures, or with a seed such as are drawn. */
export function asked(prompt: string, model: string, { seed }: Record<string, string>): ImagesRequest {
  return { prompt, model, n: MOST_PICTURES, scale: SCALE, explain: true, ...(seed === undefined ? {} : { seed: Number(seed) }) };
}

export async function paintText(text: string, run: string, signal: AbortSignal, also: Record<string, string>): Promise<Painted> {
  return await (await call("v1/images/generations", post(asked(text, run, also), signal))).json();
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
