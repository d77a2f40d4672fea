// What is looked at, and how: the state behind the tab Look.

import type { CellAnswer, Choice, Head, WordAnswer } from "$openapi";
import { ApiError } from "../page/api";
import { Ask } from "../page/ask.svelte";
import { into } from "../page/chosen.svelte";
import { Latest } from "../page/latest.svelte";
import { preferences, runWords as words } from "../page/preferences.svelte";
import { isSame, look, Looking, MOST_PIECES, spelled, type At, type HeadsAnswer, type Part, type Side, type Spot, type Units } from "./look";
import { clearest, surest, widest } from "./look_choice";
import type { LookPlace } from "./look_place";
import { rowOf, type Grid } from "../drawing/numbers";

const PAUSE = 350; // ms without a key before a request goes out
const LONG_PAUSE = 900;
const LONG = 600; // characters
const RESTED = 70; // ms on a word before more is asked for
const AT_ONCE = 4000; // so little work that heads are measured without being asked for

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

/** A cell of the map that is opened. */
export interface Cell extends At {
  /** Units that look and that are looked at. */
  row: number;
  column: number;
  /** What they are called: the pieces, where they are pieces of words. */
  names: [string, string];
  /** What had been read when the row's word was chosen; empty where a row reads itself. */
  read: string;
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
  /** Which map is shown. */
  at = $state.raw<At>({ part: "cross", layer: 0, head: null });
  selected = $state.raw<Spot | null>(null);
  /** Whether the word in focus was chosen by the page, and by nobody else yet. */
  isOffered = false;
  hovered = $state.raw<Spot | null>(null);

  off = $state.raw<Head[]>([]);
  /** Source words, not pieces. */
  hidden = $state.raw<number[]>([]);
  /** The tokens that the translation must begin with. */
  forced = $state.raw<number[]>([]);

  cell = $state.raw<Cell | null>(null);
  /** What the server tells of the selected word, of the cell, and of what each head is good for. */
  readonly told = new Latest<WordAnswer>();
  readonly computed = new Latest<CellAnswer>();
  readonly importance = new Latest<HeadsAnswer>();
  /** The weights that are shown, where they did not come with the answer. */
  readonly #weights = new Latest<true>();
  #rest: ReturnType<typeof setTimeout> | undefined;
  /** What an address asked for and the next answer must not choose by itself. */
  #asked: LookPlace | null = null;

  /** Whether the run reads a text; else it is what it writes that is looked into. */
  readonly reads = $derived(!preferences.viewOf(this.run)?.look?.isWriting);
  /** The language of what is typed. */
  readonly language = $derived((this.reads ? this.run?.source : this.run?.target) ?? "");
  readonly focus = $derived(this.hovered ?? this.selected);
  readonly isChanged = $derived(
    this.off.length > 0 || this.hidden.length > 0 || this.forced.length > 0,
  );

  /** Also where only a part of what is shown did not come. */
  override get failure(): ApiError | null {
    const errors = [super.failure, this.told.error, this.computed.error, this.#weights.error];
    return errors.find((error) => error && error.status !== 403) ?? null;
  }

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

  /** What was forced, as the last answer that has it wrote it. */
  readonly beginning = $derived(
    this.forced.length ? spelled(this.now?.answer.best.tokens.slice(0, this.forced.length).map(({ piece }) => piece) ?? []) : "",
  );

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
    if (place.at) this.at = place.at;
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
    at: this.now ? this.at : null,
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
    this.close();
    this.#soon(0);
  }

  /** Choose what is shown. */
  show(at: At): void {
    this.close();
    this.at = at;
    this.#want();
  }

  setPart(part: Part): void {
    if (part === this.at.part) return;
    const layers = this.now?.layers(part) ?? 1;
    this.show({ part, layer: Math.min(this.at.layer, layers - 1), head: this.at.head });
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
    this.close();
    if (!selected || !now || first === null || first === undefined) return this.select(null);
    const found = now.units(selected.side, units).findIndex((one) => first < one.first + one.count);
    this.select(found < 0 ? null : { side: selected.side, unit: found });
  }

  select(spot: Spot | null): void {
    this.isOffered = false;
    this.selected = spot;
    this.told.forget();
    clearTimeout(this.#rest);
    if (!spot) return;
    if (spot.side === "target" && this.at.part === "encoder") this.#turnTo("cross", "decoder");
    if (spot.side === "source" && this.at.part === "decoder") this.#turnTo("encoder", "cross");
    this.#rest = setTimeout(() => this.#ask(spot), RESTED);
  }

  /** Open a cell of the map that is shown, and keep the word that looks in focus. */
  openCell(row: number, column: number): void {
    const { now, at, units } = this;
    if (!now) return;
    this.select({ side: at.part === "encoder" ? "source" : "target", unit: row });
    this.close();
    const { rows, columns } = now.axes(at.part, units);
    const [looks, seen] = [rows[row], columns[column]];
    if (!looks || !seen) return;
    const { part, layer, head } = at;
    if (head === null || !now.answer.model.key_width) {
      this.cell = { ...at, row, column, names: [looks.text, seen.text], read: "" };
      return;
    }
    const [r, c] = now.pair(at, looks, seen);
    const pieces = now.axes(part, "pieces");
    const [piece, other] = [pieces.rows[r] ?? looks, pieces.columns[c] ?? seen];
    const read = part === "encoder" ? "" : (now.axes("decoder", "pieces").columns[r]?.text ?? "");
    this.cell = { ...at, row, column, names: [piece.text, other.text], read };
    void this.computed.ask((signal) => now.cell({ part, layer, head }, r, c, signal));
  }

  /** Close the cell. */
  close(): void {
    this.cell = null;
    this.computed.forget();
  }

  /** Ask what each head is good for. */
  measure(): void {
    const { now } = this;
    if (now) void this.importance.ask((signal) => now.importance(signal));
  }

  toggleHead(head: Head): void {
    this.off = this.isOff(head) ? this.off.filter((other) => !isSame(other, head)) : [...this.off, head];
    this.#soon(0);
  }

  /** Do as another look does, as far as this sentence has it. */
  doAs(other: AskLook): void {
    if (this.beam !== other.beam) this.setBeam(other.beam);
    this.setUnits(other.units);
    if (!isSame(this.at, other.at)) this.show(other.at);
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
  name({ part, layer, head }: At): string {
    const which = head === null ? words.head_mean : words.head_n(preferences.number(head + 1));
    return words.head_name(words[`part_${part}`], preferences.number(layer + 1), which);
  }

  isOff(at: At): boolean {
    return this.off.some((head) => isSame(head, at));
  }

  /** Whether what is chosen does nothing: a head that is off, or a layer without any that is on. */
  readonly isSilent = $derived.by((): boolean => {
    const { part, layer, head } = this.at;
    if (head !== null) return this.isOff(this.at);
    const count = this.now?.heads(part) ?? 0;
    return count > 0 && this.off.filter((other) => other.part === part && other.layer === layer).length === count;
  });

  toggleHidden(word: number): void {
    this.hidden = this.hidden.includes(word)
      ? this.hidden.filter((other) => other !== word)
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
    this.#unchange();
    this.#soon(0);
  }

  #unchange(): void {
    this.off = [];
    this.hidden = [];
    this.forced = [];
  }

  /** What is shown now, if it has arrived. */
  readonly grid: Grid | null = $derived(this.#known(this.at));

  #known(at: At): Grid | null {
    void this.#weights.answer; // what arrived since
    return this.now?.known(at, this.units) ?? null;
  }

  /** Where the focus looked, in what is chosen. */
  readonly ink: Ink | null = $derived.by(() => {
    const { focus, now, at } = this;
    if (!focus || !now) return null;
    const isElsewhere = at.part === (focus.side === "target" ? "encoder" : "decoder");
    const part = isElsewhere ? "cross" : at.part;
    if (!now.layers(part) || (!isElsewhere && this.isSilent)) return null;
    const grid = this.#known(isElsewhere ? { part, layer: now.layers(part) - 1, head: null } : at);
    if (!grid) return null;
    if (part === "cross" && focus.side === "source") {
      const weights = Float32Array.from({ length: grid.rows }, (_, r) => grid.values[r * grid.columns + focus.unit] ?? 0);
      return { part, side: "target", weights, begin: 0, reverse: true };
    }
    const row = rowOf(grid, focus.unit);
    if (part !== "decoder") return { part, side: "source", weights: row, begin: 0, reverse: false };
    return { part, side: "target", weights: row.subarray(1), begin: row[0] ?? 0, reverse: false };
  });

  /** Nothing that was chosen or changed holds of another text. */
  #restart(): void {
    this.#unchange();
    this.selected = this.hovered = null;
    this.told.forget();
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
    const isOther = now !== this.now;
    this.base = base;
    this.now = now;
    this.hovered = null;
    const asked = this.#asked;
    this.#asked = null;
    if (isOther) {
      this.close();
      this.importance.forget();
      if (now.parts.length && now.work <= AT_ONCE) this.measure();
    }
    const side = this.reads ? "source" : "target";
    const [tokens, of] = [base.answer[`${side}_tokens`], base.answer[`${side}_words`]];
    // A language without spaces has one word in a sentence: its pieces say more.
    const usual: Units = tokens.length > 6 * ((of.at(-1) ?? 0) + 1) ? "pieces" : "words";
    if (isNew) this.units = asked?.units ?? usual;
    this.at = this.#within(now, isNew && !asked?.at);
    const place = this.selected;
    if (place && place.unit >= now.units(place.side, this.units).length) this.selected = null;
    this.status = "done";
    this.#want();
    const isFree = this.choosesWord && isNew && !this.selected && asked?.word === undefined;
    const { isOffered } = this;
    this.select(isFree ? widest(now, this.units) : this.selected);
    this.isOffered = isFree || isOffered;
  }

  /** What is shown, as far as a look has it; where nobody chose it, the head that looks most surely. */
  #within(now: Looking, isFree: boolean): At {
    let { part, layer, head } = this.at;
    if (!now.layers(part)) part = now.layers("cross") ? "cross" : (now.parts[0] ?? part);
    if (isFree || layer >= now.layers(part)) {
      layer = clearest(now, part);
      head = surest(now, part, layer);
    }
    return { part, layer, head: head !== null && head >= now.heads(part) ? null : head };
  }

  /** Get what is to be shown, if it is not here. */
  #want(): void {
    const { now, at } = this;
    this.#weights.forget();
    if (!now?.layers(at.part) || now.known(at, "pieces")) return;
    void this.#weights.ask((signal) => now.grid(at, signal).then(() => true));
  }

  #ask(spot: Spot): void {
    const { now } = this;
    const unit = now?.units(spot.side, this.units)[spot.unit];
    if (now && unit && unit.count <= MOST_PIECES) void this.told.ask((signal) => now.word(spot.side, unit, signal));
  }
}
