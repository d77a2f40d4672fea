// The API of a run that parses, typed as docs/serve.md and /docs describe it.

import type { Bracket, ParseRequest, ParsedTree } from "$openapi";
import { call, post } from "../page/api";

export async function parseText(text: string, run: string, signal: AbortSignal): Promise<ParsedTree> {
  const answer = await (await call("v1/parse", post({ text, run, attention: true } satisfies ParseRequest, signal))).json();
  return answer.sentences[0].trees[0];
}

/** The words that a bracket holds. */
export function held(tree: ParsedTree, { first, count }: Bracket): string {
  const words = tree.words.slice(first, first + count);
  return words.map((word) => word.text).join(" ");
}

/** Where an arrow key leads from a bracket: up to what holds it, down to the first that it holds,
 * left and right to those beside it. */
export function neighbour({ brackets }: ParsedTree, from: number, key: string): number | undefined {
  const parent = brackets[from]?.parent;
  if (key === "ArrowUp") return parent ?? undefined;
  if (key === "Home") return 0;
  const held = (by: number | undefined) => brackets.flatMap((one, i) => (one.parent === by ? [i] : []));
  if (key === "ArrowDown") return held(from)[0];
  const step = { ArrowLeft: -1, ArrowRight: 1 }[key];
  if (step === undefined || parent == null) return undefined;
  const beside = held(parent);
  return beside[beside.indexOf(from) + step];
}
