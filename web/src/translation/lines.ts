// The API of a run that reads lines of text in pictures, typed as docs/serve.md and /docs describe it.

import { call } from "../page/api";

export interface ReadLine {
  name: string;
  width: number;
  height: number;
  text: string;
  log_probability: number;
  /** The mean of its tokens. */
  probability: number;
  /** What the model reads, and where it looked as it wrote each token. */
  seen?: { width: number; height: number; png: string; tokens: { text: string; looked: number[] }[] } | null;
  /** The language of the text. */
  target: string;
}

export async function readLine(file: Blob, name: string, run: string, signal: AbortSignal): Promise<ReadLine> {
  const body = new FormData();
  body.set("run", run);
  body.set("seen", "true");
  body.set("file", file, name);
  const answer = await (await call("v1/translate/pictures", { method: "POST", body, signal })).json();
  return { ...answer.files[0], target: answer.target };
}

/** About how wide a text is, in heights of its letters; letters of East Asia are as wide as high. */
export function widthOf(text: string): number {
  return [...text].reduce((sum, letter) => sum + (/[ᄀ-ᇿ⺀-鿿가-힯豈-﫿＀-｠]/.test(letter) ? 1 : 0.56), 0);
}
