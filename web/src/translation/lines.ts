// The API of a run that reads lines of text in pictures, typed as docs/serve.md and /docs describe it.

import type { LinesAnswer, ReadLine } from "$openapi";
import { sent, type Question } from "../files/ask_file.svelte";

/** What a line says, and the language of that. */
export type LineRead = ReadLine & Pick<LinesAnswer, "target">;

export async function readLine(asked: Question, signal: AbortSignal): Promise<LineRead> {
  const answer = await (await sent("v1/translate/pictures", asked, { run: asked.run.name, seen: "true" }, signal)).json();
  return { ...answer.files[0], target: answer.target };
}
