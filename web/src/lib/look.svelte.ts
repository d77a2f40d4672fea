// What is looked at, and how: the state behind the tab Look.

import { ApiError, type RunInfo } from "./api";
import {
  look,
  Looking,
  type Choice,
  type Head,
  type Part,
  type Side,
  type Units,
  type WordAnswer,
} from "./look";
import type { Grid } from "./numbers";

const PAUSE = 350; // ms without a key before a request goes out
const LONG_PAUSE = 900;
const LONG = 600; // characters
const RESTED = 70; // ms on a word before more is asked for

export interface Spot {
  side: Side;
  unit: number;
}

export interface Forced {
  tokens: number[];
  text: string;
}

export type LookStatus = "empty" | "waiting" | "done" | "error";

/** Where the word in focus looked, or who looked at it. */
export interface Ink {
  part: Part;
  /** The words inked, and how much; the begin symbol apart. */
  side: Side;
  weights: Float32Array;
  begin: number;
  /** True if it is the focus that was looked at. */
  reverse: boolean;
}

export class LookState {
  text = $state("");
  beam = $state(0);
  run = $state.raw<RunInfo | null>(null);
  status = $state<LookStatus>("empty");
  error = $state.raw<ApiError | null>(null);
  /** Without any change. */
  base = $state.raw<Looking | null>(null);
  /** Under the changes; the same as `base` without any. */
  now = $state.raw<Looking | null>(null);

  units = $state<Units>("words");
  part = $state<Part>("cross");
  layer = $state(0);
  /** null: the mean of the layer's heads. */
  head = $state<number | null>(null);
  selected = $state.raw<Spot | null>(null);
  hovered = $state.raw<Spot | null>(null);
  told = $state.raw<WordAnswer | null>(null);

  off = $state.raw<Head[]>([]);
  /** Source words, not pieces. */
  hidden = $state.raw<number[]>([]);
  forced = $state.raw<Forced | null>(null);

  /** Counts grids that arrived: what draws them reads it. */
  #arrived = $state(0);
  #timer: ReturnType<typeof setTimeout> | undefined;
  #request: AbortController | null = null;
  #grid: AbortController | null = null;
  #word: AbortController | null = null;
  #rest: ReturnType<typeof setTimeout> | undefined;

  readonly focus = $derived(this.hovered ?? this.selected);
  readonly isChanged = $derived(
    this.off.length > 0 || this.hidden.length > 0 || this.forced !== null,
  );

  setText(text: string): void {
    if (text === this.text) return;
    this.text = text;
    this.#forget();
    this.#soon(text.trim() ? (text.length > LONG ? LONG_PAUSE : PAUSE) : 0);
  }

  setRun(run: RunInfo): void {
    if (this.run?.name === run.name) return;
    this.run = run;
    this.#forget();
    this.base = this.now = null;
    this.#soon(0);
  }

  setBeam(beam: number): void {
    this.beam = beam;
    this.base = null;
    this.#soon(0);
  }

  again(): void {
    this.#soon(0);
  }

  /** Choose what is shown. */
  show(part: Part, layer: number, head: number | null): void {
    this.part = part;
    this.layer = layer;
    this.head = head;
    this.#want();
  }

  setPart(part: Part): void {
    if (part === this.part) return;
    const layers = this.now?.layers(part) ?? 1;
    this.show(part, Math.min(this.layer, layers - 1), this.head);
  }

  /** Show the first of the parts that the model has; the same as before if it has none of them. */
  #turnTo(...wanted: Part[]): void {
    const found = wanted.find((part) => this.now?.layers(part));
    if (found) this.setPart(found);
  }

  /** The chosen word stays chosen: the word of a piece, or the first piece of a word. */
  setUnits(units: Units): void {
    if (units === this.units) return;
    const { now, selected } = this;
    const first = selected && now?.units(selected.side, this.units)[selected.unit]?.first;
    this.units = units;
    this.hovered = null;
    if (!selected || !now || first === null || first === undefined) return this.select(null);
    const found = now.units(selected.side, units).findIndex((one) => first < one.first + one.count);
    this.select(found < 0 ? null : { side: selected.side, unit: found });
  }

  select(spot: Spot | null): void {
    this.selected = spot;
    this.told = null;
    clearTimeout(this.#rest);
    this.#word?.abort();
    if (!spot) return;
    if (spot.side === "target" && this.part === "encoder") this.#turnTo("cross", "decoder");
    if (spot.side === "source" && this.part === "decoder") this.#turnTo("encoder", "cross");
    this.#rest = setTimeout(() => void this.#ask(spot), RESTED);
  }

  toggleHead(head: Head): void {
    const same = (other: Head): boolean =>
      other.part === head.part && other.layer === head.layer && other.head === head.head;
    this.off = this.off.some(same) ? this.off.filter((one) => !same(one)) : [...this.off, head];
    this.#soon(0);
  }

  isOff(part: Part, layer: number, head: number | null): boolean {
    return this.off.some((one) => one.part === part && one.layer === layer && one.head === head);
  }

  /** Whether what is chosen does nothing: a head that is off, or a layer without any that is on. */
  readonly isSilent = $derived.by((): boolean => {
    const { part, layer, head } = this;
    if (head !== null) return this.isOff(part, layer, head);
    const count = this.now?.heads(part) ?? 0;
    return count > 0 && this.off.filter((one) => one.part === part && one.layer === layer).length === count;
  });

  toggleHidden(word: number): void {
    this.hidden = this.hidden.includes(word)
      ? this.hidden.filter((one) => one !== word)
      : [...this.hidden, word];
    this.#soon(0);
  }

  /** Let the translation go on with `choice` at the place of a target piece. */
  force(place: number, choice: Choice, text: string): void {
    const tokens = this.now?.answer.best.tokens.slice(0, place).map((token) => token.id) ?? [];
    this.forced = { tokens: [...tokens, choice.id], text };
    this.#soon(0);
  }

  release(): void {
    this.forced = null;
    this.#soon(0);
  }

  restore(): void {
    this.off = [];
    this.hidden = [];
    this.forced = null;
    this.#soon(0);
  }

  /** What is shown now, if it has arrived. */
  readonly grid: Grid | null = $derived.by(() => {
    void this.#arrived;
    return this.now?.known(this.part, this.layer, this.head, this.units) ?? null;
  });

  /** One head in words or pieces, if it is at hand. */
  at(part: Part, layer: number, head: number | null): Grid | null {
    void this.#arrived;
    return this.now?.known(part, layer, head, this.units) ?? null;
  }

  /** Where the focus looked, in what is chosen. */
  readonly ink: Ink | null = $derived.by(() => {
    const focus = this.focus;
    if (!focus || !this.now) return null;
    let part = this.part;
    if (part === "encoder" && focus.side === "target") part = "cross";
    if (part === "decoder" && focus.side === "source") part = "cross";
    if (!this.now.layers(part)) return null;
    const isShown = part === this.part;
    if (isShown && this.isSilent) return null;
    const layer = isShown ? this.layer : this.now.layers(part) - 1;
    const grid = this.at(part, layer, isShown ? this.head : null);
    if (!grid) return null;
    if (part === "cross" && focus.side === "source") {
      const weights = new Float32Array(grid.rows);
      for (let r = 0; r < grid.rows; r++) {
        weights[r] = grid.values[r * grid.columns + focus.unit] ?? 0;
      }
      return { part, side: "target", weights, begin: 0, reverse: true };
    }
    const start = focus.unit * grid.columns;
    const row = grid.values.subarray(start, start + grid.columns);
    if (part === "decoder") {
      return { part, side: "target", weights: row.subarray(1), begin: row[0] ?? 0, reverse: false };
    }
    return { part, side: "source", weights: row, begin: 0, reverse: false };
  });

  #forget(): void {
    this.off = [];
    this.hidden = [];
    this.forced = null;
    this.selected = this.hovered = null;
    this.told = null;
    this.base = null;
  }

  #soon(pause: number): void {
    clearTimeout(this.#timer);
    this.#request?.abort();
    if (this.text.trim()) this.status = "waiting";
    this.#timer = setTimeout(() => void this.#go(), pause);
  }

  async #go(): Promise<void> {
    this.error = null;
    const run = this.run;
    if (!this.text.trim() || !run) {
      this.base = this.now = null;
      this.status = "empty";
      return;
    }
    const request = (this.#request = new AbortController());
    this.status = "waiting";
    const asked = {
      text: this.text.trim(),
      run: run.name,
      source: run.source,
      ...(this.beam ? { beam: this.beam } : {}),
    };
    const nothing = { prefix_tokens: [], heads_off: [], hidden: [], compare: [] };
    try {
      const base = this.base ?? (await look({ ...asked, ...nothing }, request.signal));
      let now = base;
      if (this.isChanged) {
        const changes = {
          prefix_tokens: this.forced?.tokens ?? [],
          heads_off: this.off,
          hidden: base.answer.source_words.flatMap((word, i) => (this.hidden.includes(word) ? [i] : [])),
          compare: base.answer.best.tokens.map((token) => token.id),
        };
        now = await look({ ...asked, ...changes }, request.signal);
      }
      if (request.signal.aborted) return;
      const isNew = this.now?.request.text !== base.request.text || this.now.answer.run !== run.name;
      this.#take(base, now, isNew);
    } catch (error) {
      if (request.signal.aborted) return;
      this.error = error instanceof ApiError ? error : new ApiError(0, String(error));
      this.status = "error";
    }
  }

  #take(base: Looking, now: Looking, isNew: boolean): void {
    this.base = base;
    this.now = now;
    this.hovered = null;
    const { source_tokens: tokens, source_words: of } = base.answer;
    // A language without spaces has one word in a sentence: its pieces say more.
    if (isNew) this.units = tokens.length > 6 * ((of.at(-1) ?? 0) + 1) ? "pieces" : "words";
    const place = this.selected;
    if (place && place.unit >= now.units(place.side, this.units).length) this.selected = null;
    if (!now.layers(this.part)) this.part = now.layers("cross") ? "cross" : (now.parts[0] ?? this.part);
    const layers = now.layers(this.part);
    if (isNew || this.layer >= layers) {
      this.layer = clearest(now, this.part);
      this.head = null;
    }
    this.status = "done";
    this.#want();
    this.select(this.selected);
  }

  /** Get what is to be shown, if it is not here. */
  #want(): void {
    const now = this.now;
    this.#grid?.abort();
    if (!now?.layers(this.part) || now.known(this.part, this.layer, this.head, "pieces")) return;
    const request = (this.#grid = new AbortController());
    now
      .grid(this.part, this.layer, this.head, request.signal)
      .then(() => this.#arrived++)
      .catch((error: unknown) => this.#failed(error, request));
  }

  async #ask(spot: Spot): Promise<void> {
    const unit = this.now?.units(spot.side, this.units)[spot.unit];
    if (!this.now || !unit) return;
    const request = (this.#word = new AbortController());
    try {
      const told = await this.now.word(spot.side, unit, request.signal);
      if (!request.signal.aborted) this.told = told;
    } catch (error) {
      this.#failed(error, request);
    }
  }

  #failed(error: unknown, request: AbortController): void {
    if (request.signal.aborted) return;
    this.error = error instanceof ApiError ? error : new ApiError(0, String(error));
  }
}

/** The layer whose heads together look most surely at one word; the last of a long text. */
function clearest(looking: Looking, part: Part): number {
  let best = looking.layers(part) - 1;
  if (!looking.isWhole) return best;
  let most = -1;
  for (let layer = 0; layer < looking.layers(part); layer++) {
    const grid = looking.known(part, layer, null, "words");
    if (!grid) continue;
    let sum = 0;
    for (let r = 0; r < grid.rows; r++) {
      sum += grid.values.subarray(r * grid.columns, (r + 1) * grid.columns).reduce((a, b) => Math.max(a, b), 0);
    }
    if (sum > most) [best, most] = [layer, sum];
  }
  return best;
}
