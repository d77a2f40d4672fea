// The API of a run that labels, typed as docs/serve.md and /docs describe it.

import type { ClassifyRequest, LabelledFile, LabelledText, LabelledWord, Seen as SeenFile } from "$openapi";
import { sent, type Question } from "../files/ask_file.svelte";
import { call, post, type With } from "../page/api";
import type { Panel } from "../figures/figures";
import { background } from "../drawing/coloured_words";

export type Labelled = With<LabelledText, "words">;
/** Its steps are panels, of which OpenAPI says only that they are objects. */
export interface Seen extends Omit<SeenFile, "reading"> {
  reading?: Panel[];
}
export type LabelledSeen = LabelledFile & { seen: Seen };

/** As many as a page shows well. */
export const MOST_LABELS = 30;

export async function classifyText(text: string, run: string, signal: AbortSignal): Promise<Labelled> {
  const asked: ClassifyRequest = { text, run, top: MOST_LABELS, why: true };
  return (await (await call("v1/classify", post(asked, signal))).json()).texts[0];
}

export async function labelFile(asked: Question, signal: AbortSignal): Promise<LabelledSeen> {
  const fields = { run: asked.run.name, top: String(MOST_LABELS), seen: "true" };
  return (await (await sent("v1/classify", asked, fields, signal)).json()).files[0];
}

export type Measure = "gradient" | "attention";

/** A tenth of a nat moves a probability of one half by 2.5 points: where no word does as much, all
 * are pale. */
const LEAST = { gradient: 0.1, attention: 0 };

/** What is drawn in the deepest colour: the greatest size of a measure among the words. */
export function deepest(words: LabelledWord[], measure: Measure): number {
  return Math.max(LEAST[measure], greatest(words, measure));
}

/** The greatest size of a measure among the words. */
export function greatest(words: LabelledWord[], measure: Measure): number {
  return Math.max(0, ...words.map((word) => Math.abs(word[measure] ?? 0)));
}

const DEEPEST = 48; // percent: no deeper than text can be read on

/** The colour of a word: one for what speaks for the label or is looked at, another for what speaks
 * against it. */
export function ink(value: number | null | undefined, most: number): string | null {
  if (value == null || !most) return null;
  return background(value < 0 ? "doubt" : "accent", Math.round((Math.abs(value) / most) * DEEPEST));
}
