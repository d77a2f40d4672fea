// The API of a run that paints, typed as docs/serve.md and /docs describe it.

import type { ImagesAnswer, ImagesRequest, PaintedImage } from "$openapi";
import { call, post, type With } from "../page/api";

export type Painted = Omit<With<ImagesAnswer, "words" | "unknown">, "data"> & { data: With<PaintedImage, "written">[] };

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
