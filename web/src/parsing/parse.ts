// The API of a run that parses, typed as docs/serve.md and /docs describe it.

import { call, post } from "../page/api";

export interface TreeWord {
  text: string;
  tag?: string;
  /** Number of the bracket that holds it. */
  parent: number;
}

export interface Bracket {
  label: string;
  /** Left out of the outermost. */
  parent?: number;
  first: number;
  count: number;
  /** Of each word, the share that the model looked at when it opened the bracket. */
  attention?: number[];
}

export interface ParsedTree {
  text: string;
  score: number;
  log_probability: number;
  words: TreeWord[];
  /** Each before those that it holds. */
  brackets: Bracket[];
}

export async function parse(text: string, run: string, signal: AbortSignal): Promise<ParsedTree> {
  const answer = await (await call("v1/parse", post({ text, run, attention: true }, signal))).json();
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
  if (key === "ArrowUp") return parent;
  if (key === "Home") return 0;
  const held = (by: number | undefined) => brackets.flatMap((one, i) => (one.parent === by ? [i] : []));
  if (key === "ArrowDown") return held(from)[0];
  const step = { ArrowLeft: -1, ArrowRight: 1 }[key];
  if (step === undefined || parent === undefined) return undefined;
  const beside = held(parent);
  return beside[beside.indexOf(from) + step];
}
