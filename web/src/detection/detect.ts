// The API of a run that finds boxes, typed as docs/serve.md and /docs describe it.

import type { FoundBox, SearchedPicture } from "$openapi";
import { send, type Question } from "../files/ask_file.svelte";

/** All boxes of a picture, whatever their score. */
export async function detect(asked: Question, signal: AbortSignal): Promise<SearchedPicture> {
  const fields = { run: asked.run.name, threshold: "0.05", seen: "true" };
  return (await (await send("v1/detect", asked, fields, signal)).json()).files[0];
}

/** Of categories, in turn; white letters stand on each. */
const COLOURS = ["#c2163d", "#1f7a33", "#2f4fc4", "#a8490b", "#7f1899", "#006e6e", "#7a4d14", "#5c5c00"];

/** The colour of each label that was found. */
export function coloursOf(boxes: FoundBox[]): Record<string, string> {
  const labels = [...new Set(boxes.map((one) => one.label))].sort();
  return Object.fromEntries(labels.map((label, number) => [label, COLOURS[number % COLOURS.length]!]));
}
