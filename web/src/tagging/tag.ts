// The API of a run that tags words, typed as docs/serve.md and /docs describe it, and how its words
// are drawn.

import type { TagRequest, TaggedText, TaggedWord } from "$openapi";
import { call, post } from "../page/api";

/** Tags of each word that are asked for. */
export const TOP = 6;

export async function tagText(text: string, run: string, signal: AbortSignal): Promise<TaggedText> {
  return (await (await call("v1/tag", post({ text, run, top: TOP } satisfies TagRequest, signal))).json()).texts[0];
}

/** Words that are drawn together: those of a span, or one. */
export interface Group {
  /** The kind of the span or the tag of the word; empty where nothing is said of it. */
  name: string;
  first: number;
  words: TaggedWord[];
}

export function groupsOf({ words, spans }: TaggedText): Group[] {
  if (!spans) return words.map((word, first) => ({ name: word.tag, first, words: [word] }));
  const groups: Group[] = [];
  const alone = (from: number, to: number): void => {
    for (let first = from; first < to; first++) groups.push({ name: "", first, words: words.slice(first, first + 1) });
  };
  let behind = 0;
  for (const { kind, first, count } of spans) {
    alone(behind, first);
    behind = first + count;
    groups.push({ name: kind, first, words: words.slice(first, behind) });
  }
  alone(behind, words.length);
  return groups;
}
