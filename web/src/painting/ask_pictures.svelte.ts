// A caption that a run is asked to paint: the most probable pictures, or such as are drawn.

import { AskText } from "../page/ask.svelte";
import { paint, type Painted } from "./paint";

export class AskPictures extends AskText<Painted> {
  constructor() {
    super("paint", (text, run, signal, { seed }) => paint(text, run, seed === undefined ? null : Number(seed), signal));
  }

  protected override known({ seed }: Record<string, string>): Record<string, string> {
    return seed && /^\d{1,9}$/.test(seed) ? { seed: String(Number(seed)) } : {};
  }

  /** What pictures are drawn by; null: the most probable ones are searched for. */
  get seed(): number | null {
    return this.also.seed === undefined ? null : Number(this.also.seed);
  }

  /** Draw others, or search again for the most probable. */
  setSeed(seed: number | null): void {
    this.set(seed === null ? {} : { seed: String(seed) });
  }
}
