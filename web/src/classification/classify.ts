// The API of a run that labels, typed as docs/serve.md and /docs describe it.

import { call, post } from "../page/api";
import type { Panel } from "../figures/figures";
import type { Ink } from "../drawing/coloured_words";

export interface Label {
  name: string;
  probability: number;
}

export interface LabelledWord {
  before: string;
  text: string;
  /** In nats, above 0 where it speaks for the label; left out of what was not read. */
  gradient?: number;
  /** Share of what is looked at; left out also where the model has no attention. */
  attention?: number;
}

export interface Labelled {
  label: string;
  probability: number;
  labels: Label[];
  cut: boolean;
  words: LabelledWord[];
}

/** As many as a page shows well. */
export const MOST_LABELS = 30;

export async function classify(text: string, run: string, signal: AbortSignal): Promise<Labelled> {
  const asked = { text, run, top: MOST_LABELS, why: true };
  return (await (await call("v1/classify", post(asked, signal))).json()).texts[0];
}

/** What a model reads of a file, as a picture. */
export interface Seen {
  width: number;
  height: number;
  png: string;
  /** Of a picture: how much of the label comes from each patch, row by row. */
  rollout?: { rows: number; columns: number; shares: number[] };
  /** How it is divided into cells that can be hidden. */
  grid?: { rows: number; columns: number };
  /** Of each layer and head, the share of its attention that each patch gets; where asked for. */
  heads?: number[][][];
  /** The picture on its way through the model; where asked for. */
  reading?: Panel[];
}

export interface LabelledFile {
  label: string;
  probability: number;
  labels: Label[];
  cut: boolean;
  /** Seconds of sound, or pixels. */
  size: number;
  seen: Seen;
}

export async function labelFile(
  file: Blob,
  name: string,
  run: string,
  signal: AbortSignal,
  also: Record<string, string> = {},
): Promise<LabelledFile> {
  const body = new FormData();
  const fields = { run, top: String(MOST_LABELS), seen: "true", ...also };
  for (const [field, value] of Object.entries(fields)) body.set(field, value);
  body.set("file", file, name);
  return (await (await call("v1/classify", { method: "POST", body, signal })).json()).files[0];
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
export function ink(value: number | undefined, most: number): Ink | null {
  if (value === undefined || !most) return null;
  return { of: value < 0 ? "doubt" : "accent", share: Math.round((Math.abs(value) / most) * DEEPEST) };
}

/** The patch that counted most, its row and column from 1. */
export function mostOf(rollout: Seen["rollout"]): { row: number; column: number; share: number } | null {
  if (!rollout) return null;
  const share = Math.max(...rollout.shares);
  const place = rollout.shares.indexOf(share);
  return { row: Math.floor(place / rollout.columns) + 1, column: (place % rollout.columns) + 1, share };
}
