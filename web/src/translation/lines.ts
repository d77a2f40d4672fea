// The API of a run that reads lines of text in pictures, typed as docs/serve.md and /docs describe it.

import type { LinesAnswer, ReadLine } from "$openapi";
import { sent, type Question } from "../files/ask_file.svelte";

/** What a line says, and the language of that. */
export type LineRead = ReadLine & Pick<LinesAnswer, "target">;

export async function readLine(asked: Question, signal: AbortSignal): Promise<LineRead> {
  const answer = await (await sent("v1/translate/pictures", asked, { run: asked.run.name, seen: "true" }, signal)).json();
  return { ...answer.files[0], target: answer.target };
}

/** About how wide a text is, in heights of its letters; letters of East Asia are as wide as high. */
export function widthOf(text: string): number {
  return [...text].reduce((sum, letter) => sum + (/[ᄀ-ᇿ⺀-鿿가-힯豈-﫿＀-｠]/.test(letter) ? 1 : 0.56), 0);
}
