// What is looked at, and how: the state behind the tab Look.

import type { Choice, Head, WordAnswer } from "$openapi";
import { ApiError } from "../page/api";
import { Ask } from "../page/ask.svelte";
import { into } from "../page/chosen.svelte";
import { preferences } from "../page/preferences.svelte";
import { look, Looking, MOST_PIECES, type Part, type Side, type Spot, type Units } from "./look";
import { clearest, surest, widest } from "./look_choice";
import { OpenedState } from "./opened.svelte";
import type { LookPlace } from "./look_place";
import type { Grid } from "../drawing/numbers";

const PAUSE = 350; // ms without a key before a request goes out
const LONG_PAUSE = 900;
const LONG = 600; // characters
const RESTED = 70; // ms on a word before more is asked for

/** Where the word in focus looked, or who looked at it. */
export interface Ink {
  part: Part;
  /** The words inked, and how much; the start symbol apart. */
  side: Side;
  weights: Float32Array;
  begin: number;
  /** True if it is the focus that was looked at. */
  reverse: boolean;
}

export class AskLook extends Ask {
  /** `choosesWord`: whether a word is put into focus where nobody chose one. */
  constructor(readonly choosesWord = true) {
    super("look");
  }

  /** Which sentence of the text is looked into; null: the text as one. */
  sentence = $state<number | null>(0);
  beam = $state(0);
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
  /** Whether the word in focus was chosen by the page, and by nobody else yet. */
  isOffered = false;
  hovered = $state.raw<Spot | null>(null);
  told = $state.raw<WordAnswer | null>(null);

  off = $state.raw<Head[]>([]);
  /** Source words, not pieces. */
  hidden = $state.raw<number[]>([]);
  /** The tokens that the translation must begin with. */
  forced = $state.raw<number[]>([]);

  /** A cell that is opened, and what each head is good for. */
  readonly opened = new OpenedState();

  /** Counts grids that arrived: what draws them reads it. */
  #arrived = $state(0);
  #grid: AbortController | null = null;
  #word: AbortController | null = null;
  #rest: ReturnType<typeof setTimeout> | undefined;
  /** What an address asked for and the next answer must not choose by itself. */
  #asked: LookPlace | null = null;

  /** Whether the run reads a text; else it is what it writes that is looked into. */
  readonly reads = $derived(!preferences.viewOf(this.run)?.look?.isWriting);
  readonly focus = $derived(this.hovered ?? this.selected);
  readonly isChanged = $derived(
    this.off.length > 0 || this.hidden.length > 0 || this.forced.length > 0,
  );

  override setText(text: string): void {
    if (text === this.text) return;
    this.text = text;
    this.sentence = 0;
    this.#restart();
    this.#soon(text.trim() ? (text.length > LONG ? LONG_PAUSE : PAUSE) : 0);
  }

  protected override forget(): void {
    this.#restart();
    this.now = null;
  }

  /** The sentences of the text, as far as they are known. */
  readonly sentences = $derived(this.base?.answer.sentences ?? []);

  setSentence(sentence: number | null): void {
    if (sentence === this.sentence) return;
    this.sentence = sentence;
    this.#restart();
    this.#soon(0);
  }

  /** Show what an address holds. */
  open(text: string, place: LookPlace): void {
    if (text === this.text && JSON.stringify(place) === JSON.stringify(this.made)) return;
    this.text = text;
    this.#restart();
    this.sentence = place.sentence;
    this.beam = place.beam;
    this.units = place.units ?? "words";
    if (place.at) [this.part, this.layer, this.head] = [place.at.part, place.at.layer, place.at.head];
    this.selected = place.word ?? null;
    this.off = place.off;
    this.hidden = place.hidden;
    this.forced = place.forced;
    this.#asked = place;
    this.#soon(0);
  }

  /** Whether what is shown is of a text before this one. */
  readonly isOld = $derived(this.status === "waiting" && this.base === null);

  /** What was made here, for an address to hold. */
  readonly made: LookPlace = $derived({
    sentence: this.sentence,
    beam: this.beam,
    units: this.now ? this.units : null,
    at: this.now ? { part: this.part, layer: this.layer, head: this.head } : null,
    word: this.selected ?? (this.now ? null : undefined),
    off: this.off,
    hidden: this.hidden,
    forced: this.forced,
  });

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
    this.opened.close();
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
    this.opened.close();
    if (!selected || !now || first === null || first === undefined) return this.select(null);
    const found = now.units(selected.side, units).findIndex((one) => first < one.first + one.count);
    this.select(found < 0 ? null : { side: selected.side, unit: found });
  }

  select(spot: Spot | null): void {
    this.isOffered = false;
    this.selected = spot;
    this.told = null;
    clearTimeout(this.#rest);
    this.#word?.abort();
    if (!spot) return;
    if (spot.side === "target" && this.part === "encoder") this.#turnTo("cross", "decoder");
    if (spot.side === "source" && this.part === "decoder") this.#turnTo("encoder", "cross");
    this.#rest = setTimeout(() => void this.#ask(spot), RESTED);
  }

  /** Open a cell of the map that is shown, and keep the word that looks in focus. */
  openCell(row: number, column: number): void {
    if (!this.now) return;
    this.select({ side: this.part === "encoder" ? "source" : "target", unit: row });
    void this.opened.open(this.now, this.part, this.layer, this.head, this.units, row, column);
  }

  toggleHead(head: Head): void {
    const same = (other: Head): boolean =>
      other.part === head.part && other.layer === head.layer && other.head === head.head;
    this.off = this.off.some(same) ? this.off.filter((one) => !same(one)) : [...this.off, head];
    this.#soon(0);
  }

  /** Do as another look does, as far as this sentence has it. */
  doAs(other: AskLook): void {
    if (this.beam !== other.beam) this.setBeam(other.beam);
    this.setUnits(other.units);
    const isSame = this.part === other.part && this.layer === other.layer && this.head === other.head;
    if (!isSame) this.show(other.part, other.layer, other.head);
    if (JSON.stringify(this.off) !== JSON.stringify(other.off)) {
      this.off = other.off;
      this.#soon(0);
    }
  }

  /** Put the word of the same place into focus, if there is one. */
  selectAs(spot: Spot | null): void {
    const { selected, now } = this;
    if (selected?.side === spot?.side && selected?.unit === spot?.unit) return;
    if (spot && spot.unit >= (now?.units(spot.side, this.units).length ?? 0)) return;
    this.select(spot);
  }

  /** What a head is called, or with null the mean of a layer's heads. */
  name(part: Part, layer: number, head: number | null): string {
    const words = preferences.wordsOf(this.run);
    const which = head === null ? words.head_mean : words.head_n(preferences.number(head + 1));
    return words.head_name(words[`part_${part}`], preferences.number(layer + 1), which);
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
  force(place: number, choice: Choice): void {
    const tokens = this.now?.answer.best.tokens.slice(0, place).map((token) => token.id) ?? [];
    this.forced = [...tokens, choice.id];
    this.#soon(0);
  }

  release(): void {
    this.forced = [];
    this.#soon(0);
  }

  restore(): void {
    this.off = [];
    this.hidden = [];
    this.forced = [];
    this.#soon(0);
  }

  /** What is shown now, if it has arrived. */
  readonly grid: Grid | null = $derived(this.at(this.part, this.layer, this.head));

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

  /** Nothing that was chosen or changed holds of another text. */
  #restart(): void {
    this.off = [];
    this.hidden = [];
    this.forced = [];
    this.selected = this.hovered = null;
    this.told = null;
    this.base = null;
    this.#asked = null;
  }

  #soon(pause: number): void {
    this.cancel();
    if (this.text.trim()) this.status = "waiting";
    this.soon(pause, () => this.go((signal) => this.#look(signal)));
  }

  async #look(signal: AbortSignal): Promise<void> {
    const run = this.run;
    if (!this.text.trim() || !run) {
      this.base = this.now = null;
      this.status = "empty";
      return;
    }
    this.status = "waiting";
    const asked = {
      text: this.text.trim(),
      sentence: this.sentence,
      run: run.name,
      source: run.source,
      ...into(run),
      ...(this.beam ? { beam: this.beam } : {}),
    };
    const nothing = { prefix_tokens: [], heads_off: [], hidden: [], compare: [] };
    const base = this.base ?? (await look({ ...asked, ...nothing }, signal));
    let now = base;
    if (this.isChanged) {
      const changes = {
        prefix_tokens: this.forced,
        heads_off: this.off,
        hidden: base.answer.source_words.flatMap((word, i) => (this.hidden.includes(word) ? [i] : [])),
        compare: base.answer.best.tokens.map((token) => token.id),
      };
      now = await look({ ...asked, ...changes }, signal);
    }
    if (signal.aborted) return;
    const before = this.now;
    const isNew =
      before?.request.text !== asked.text ||
      before.request.sentence !== asked.sentence ||
      before.answer.run !== run.name;
    this.#take(base, now, isNew);
  }

  protected override failed(error: ApiError): void {
    this.now = this.base; // what stands there is of another text, or of other changes
    super.failed(error);
  }

  #take(base: Looking, now: Looking, isNew: boolean): void {
    if (now !== this.now) this.opened.forget(now);
    this.base = base;
    this.now = now;
    this.hovered = null;
    const asked = this.#asked;
    this.#asked = null;
    const answer = base.answer;
    const [tokens, of] = this.reads
      ? [answer.source_tokens, answer.source_words]
      : [answer.target_tokens, answer.target_words];
    // A language without spaces has one word in a sentence: its pieces say more.
    const usual: Units = tokens.length > 6 * ((of.at(-1) ?? 0) + 1) ? "pieces" : "words";
    if (isNew) this.units = asked?.units ?? usual;
    if (!now.layers(this.part)) this.part = now.layers("cross") ? "cross" : (now.parts[0] ?? this.part);
    const layers = now.layers(this.part);
    if ((isNew && !asked?.at) || this.layer >= layers) {
      this.layer = clearest(now, this.part);
      this.head = surest(now, this.part, this.layer);
    }
    if (this.head !== null && this.head >= now.heads(this.part)) this.head = null;
    const place = this.selected;
    if (place && place.unit >= now.units(place.side, this.units).length) this.selected = null;
    this.status = "done";
    this.#want();
    const isFree = this.choosesWord && isNew && !this.selected && asked?.word === undefined;
    const { isOffered } = this;
    this.select(isFree ? widest(now, this.units) : this.selected);
    this.isOffered = isFree || isOffered;
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
      .catch((error: unknown) => this.#lacks(error, request));
  }

  async #ask(spot: Spot): Promise<void> {
    const unit = this.now?.units(spot.side, this.units)[spot.unit];
    if (!this.now || !unit || unit.count > MOST_PIECES) return;
    const request = (this.#word = new AbortController());
    try {
      const told = await this.now.word(spot.side, unit, request.signal);
      if (!request.signal.aborted) this.told = told;
    } catch (error) {
      this.#lacks(error, request);
    }
  }

  /** Only a part of what is shown did not come. */
  #lacks(error: unknown, request: AbortController): void {
    if (request.signal.aborted) return;
    this.error = ApiError.of(error);
  }
}
