// The filler behind the page: a text with blanks in, candidates out, and those that were put in.

import type { FillAnswer, RunInfo } from "$openapi";
import type { Place } from "../page/address";
import { Asked } from "../page/asked.svelte";
import { fill, filledIn, hasBlank } from "./fill";

export const MOST_PIECES = 8;

export class FillerState {
  pieces = $state(1);
  /** The texts that stood here before words were put in, the last one last. */
  before = $state.raw<string[]>([]);

  readonly asked = new Asked<FillAnswer>(
    "fill",
    (text, run, signal) => fill(text, run, this.pieces, signal),
    hasBlank,
  );

  get run(): RunInfo | null {
    return this.asked.run;
  }

  get text(): string {
    return this.asked.text;
  }

  get error(): Asked<FillAnswer>["error"] {
    return this.asked.error;
  }

  setText(text: string): void {
    this.before = [];
    this.asked.setText(text);
  }

  setRun(run: RunInfo): void {
    this.asked.setRun(run);
  }

  setPieces(pieces: number): void {
    this.pieces = pieces;
    this.asked.again();
  }

  again(): void {
    this.asked.again();
  }

  /** Put a word into a blank; the others are asked again. */
  choose(blank: number, word: string): void {
    this.#show([...this.before, this.asked.text], filledIn(this.asked.text, blank, word));
  }

  undo(): void {
    const last = this.before.at(-1);
    if (last !== undefined) this.#show(this.before.slice(0, -1), last);
  }

  /** Show what an address holds. */
  follow({ text, more }: Place): void {
    const pieces = Math.floor(Number(more.pieces ?? 1));
    this.pieces = pieces >= 1 && pieces <= MOST_PIECES ? pieces : 1;
    if (text !== this.asked.text) this.setText(text);
  }

  /** What an address has to hold. */
  readonly place = $derived.by(() => ({
    ...this.asked.place,
    more: { pieces: this.pieces > 1 ? String(this.pieces) : "" },
  }));

  #show(before: string[], text: string): void {
    this.before = before;
    this.asked.text = text;
    this.asked.again();
  }
}
