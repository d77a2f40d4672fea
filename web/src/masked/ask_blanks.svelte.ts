// A text with blanks that a run is asked about, and the words that were put in.

import type { FillAnswer } from "$openapi";
import { AskText } from "../page/ask.svelte";
import { fill, filledIn, hasBlank } from "./fill";

export const MOST_PIECES = 8;

function known({ pieces }: Record<string, string>): Record<string, string> {
  const count = Math.floor(Number(pieces ?? 1));
  return count > 1 && count <= MOST_PIECES ? { pieces: String(count) } : {};
}

export class AskBlanks extends AskText<FillAnswer> {
  /** The texts that stood here before words were put in, the last one last. */
  before = $state.raw<string[]>([]);

  constructor() {
    super("fill", (text, run, signal, { pieces }) => fill(text, run, Number(pieces ?? 1), signal), known);
  }

  protected override isWhole(text: string): boolean {
    return hasBlank(text);
  }

  /** How many pieces of the vocabulary a blank stands for. */
  get pieces(): number {
    return Number(this.also.pieces ?? 1);
  }

  setPieces(pieces: number): void {
    this.set(pieces > 1 ? { pieces: String(pieces) } : {});
  }

  override setText(text: string): void {
    this.before = [];
    super.setText(text);
  }

  /** Put a word into a blank; the others are asked again. */
  choose(blank: number, word: string): void {
    this.#show([...this.before, this.text], filledIn(this.text, blank, word));
  }

  undo(): void {
    const last = this.before.at(-1);
    if (last !== undefined) this.#show(this.before.slice(0, -1), last);
  }

  #show(before: string[], text: string): void {
    this.before = before;
    this.text = text;
    this.again();
  }
}
