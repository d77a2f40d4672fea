// The API of a masked model, typed as docs/serve.md and /docs describe it.

import type { FillAnswer, FillRequest } from "$openapi";
import { call, post } from "../page/api";

/** Candidates of each blank that the page shows. */
const TOP = 8;
/** As the server sees them: three underscores or more. */
const BLANK = /_{3,}/;

export async function fill(text: string, run: string, pieces: number, signal: AbortSignal): Promise<FillAnswer> {
  return (await call("v1/fill", post({ text, run, pieces, top: TOP } satisfies FillRequest, signal))).json();
}

export function hasBlank(text: string): boolean {
  return BLANK.test(text);
}

/** What stands before, between and behind the blanks. */
export function around(text: string): string[] {
  return text.split(new RegExp(BLANK, "g"));
}

/** A text with a word in one of its blanks, counted from 0. */
export function filledIn(text: string, blank: number, word: string): string {
  let number = 0;
  return text.replace(new RegExp(BLANK, "g"), (found) => (number++ === blank ? word : found));
}
