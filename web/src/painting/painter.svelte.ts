// A caption that a run is asked to paint: the most probable pictures, or such as are drawn.

import type { Given, Place } from "../page/address";
import { Asked } from "../page/asked.svelte";
import { paint, type Painted } from "./paint";

class Drawing {
  seed = $state<number | null>(null);
}

export class PainterState extends Asked<Painted> {
  readonly #drawing: Drawing;

  constructor() {
    const drawing = new Drawing();
    super("paint", (text, run, signal) => paint(text, run, drawing.seed, signal));
    this.#drawing = drawing;
  }

  /** What pictures are drawn by; null: the most probable ones are searched for. */
  get seed(): number | null {
    return this.#drawing.seed;
  }

  /** Draw others, or search again for the most probable. */
  setSeed(seed: number | null): void {
    if (seed === this.seed) return;
    this.#drawing.seed = seed;
    this.again();
  }

  override follow(place: Place): void {
    const seed = /^\d{1,9}$/.test(place.more.seed ?? "") ? Number(place.more.seed) : null;
    if (place.text !== this.text) this.#drawing.seed = seed;
    else this.setSeed(seed);
    super.follow(place);
  }

  override readonly place: Given = $derived({
    view: this.view,
    run: this.run?.name ?? "",
    text: this.text,
    more: { seed: this.seed === null ? "" : String(this.seed) },
  });
}
