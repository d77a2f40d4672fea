// The API of a run that finds boxes, typed as docs/serve.md and /docs describe it.

import type { SearchedPicture } from "$openapi";
import { sent, type Question } from "../files/ask_file.svelte";

/** All boxes of a picture, whatever their score. */
export async function detect(asked: Question, signal: AbortSignal): Promise<SearchedPicture> {
  const fields = { run: asked.run.name, threshold: "0.05", seen: "true" };
  return (await (await sent("v1/detect", asked, fields, signal)).json()).files[0];
}
