// How a text begins in, how it goes on as it grows, choices kept.

import type { Continuation, ContinuationsAnswer, ContinuationsRequest, SurpriseRequest, TextWord, WriteRequest } from "$openapi";
import type { Given, Place } from "../page/address";
import { call, events, post } from "../page/api";
import { Ask } from "../page/ask.svelte";
import { joined, kept, type Ending, type WriteEvent } from "./write";

const PAUSE = 250; // ms without a key before a text is read
const USUAL = { temperature: 0.8, k: 0, p: 1, seed: 0, longest: 100, stop: "", likeliest: false };

/** How tokens are drawn, and where a text ends. */
export type How = typeof USUAL;

interface Version {
  text: string;
  words: TextWord[];
}

/** Its text is all that stands on the other side: how it began, and how it went on. */
export class AskWriting extends Ask<"reading" | "read" | "writing" | "stopped"> {
  /** What stands in the field. */
  begun = $state("");
  /** The words of the text, as far as they are known. */
  words = $state.raw<TextWord[]>([]);
  how = $state.raw<How>(USUAL);
  ending = $state<Ending | null>(null);
  /** Tokens of the beginning that the model had to forget. */
  forgotten = $state(false);
  /** What stood there before a person chose another word. */
  before = $state.raw<Version | null>(null);
  /** What was gone on with last. */
  from = $state.raw<Version | null>(null);

  /** Words that were not there when it was last gone on with begin here. */
  readonly added = $derived(this.from ? this.text.slice(this.from.text.length) : "");

  override get isBusy(): boolean {
    return this.status === "writing";
  }

  override setText(text: string): void {
    this.begun = text;
    this.#show({ text, words: kept(this.words, text) });
    this.before = this.from = this.ending = null;
    this.#soon(text.trim() ? PAUSE : 0);
  }

  override begin(text: string): void {
    this.setText(text);
    void this.write();
  }

  override add(word: string): void {
    this.setText(`${this.begun.trimEnd()} ${word}`.trimStart());
  }

  protected override forget(): void {
    this.words = [];
    this.before = this.from = null;
  }

  set(how: Partial<How>): void {
    this.how = { ...this.how, ...how };
  }

  /** Read again what stands there. */
  again(): void {
    this.#soon(0);
  }

  stop(): void {
    this.cancel();
    if (this.isBusy) this.status = "stopped";
  }

  /** Go on with what stands there. */
  async write(): Promise<void> {
    const run = this.run;
    if (!run) return;
    this.status = "writing";
    this.ending = null;
    this.from = { text: this.text, words: this.words };
    const asked: WriteRequest = { text: this.text, run: run.name, ...this.settings };
    await this.go(async (signal) => {
      for await (const event of events<WriteEvent>("v1/write", asked, signal)) this.#take(event);
    });
  }

  /** Go on otherwise: with other numbers drawn. */
  another(): void {
    if (!this.from) return;
    this.#show(this.from);
    this.set({ seed: this.how.seed + 1 });
    void this.write();
  }

  /** What else could stand in place of a word. */
  async others(word: number, signal: AbortSignal): Promise<ContinuationsAnswer> {
    const asked: ContinuationsRequest = { text: this.text, word, run: this.run?.name ?? "" };
    return (await call("v1/continuations", post(asked, signal))).json();
  }

  /** Let another word stand there, and the text go on from it. */
  choose(begin: string, { before, text }: Continuation): void {
    const now = { text: this.text, words: this.words };
    const chosen = begin + before + text;
    this.#show({ text: chosen, words: kept(this.words, chosen) });
    void this.write();
    this.before = now;
  }

  undo(): void {
    if (!this.before) return;
    this.cancel();
    this.error = null;
    this.#show(this.before);
    this.before = this.from = this.ending = null;
    this.status = "read";
  }

  /** Put all of it into the field. */
  edit(): void {
    this.stop();
    this.begun = this.text;
    this.before = this.from = this.ending = null;
  }

  override follow({ text, more }: Place): void {
    const number = (name: string, usual: number): number => {
      const found = Number(more[name] ?? "");
      return more[name] && Number.isFinite(found) && found >= 0 ? found : usual;
    };
    this.how = {
      temperature: number("temperature", USUAL.temperature) || USUAL.temperature,
      k: Math.floor(number("k", USUAL.k)),
      p: Math.min(1, number("p", USUAL.p) || 1),
      seed: Math.floor(number("seed", USUAL.seed)),
      longest: Math.max(1, Math.floor(number("longest", USUAL.longest))),
      stop: (more.stop ?? "").slice(0, 100),
      likeliest: more.how === "likeliest",
    };
    if (text !== this.text) this.setText(text);
  }

  override get place(): Given {
    const { likeliest, ...numbers } = this.how;
    const changed = Object.entries(numbers).filter(([name, value]) => value !== USUAL[name as keyof How]);
    const more = Object.fromEntries(changed.map(([name, value]) => [name, String(value)]));
    return { ...super.place, more: { ...more, how: likeliest ? "likeliest" : "" } };
  }

  #show({ text, words }: Version): void {
    this.text = text;
    this.words = words;
  }

  #soon(pause: number): void {
    this.cancel();
    this.error = null;
    this.status = this.text.trim() ? "reading" : "empty";
    if (this.text.trim() && this.run) this.soon(pause, () => this.go((signal) => this.#read(signal)));
  }

  /** How a text is written, as the server is asked. */
  readonly settings = $derived.by(() => {
    const { temperature, k, p, seed, longest, stop, likeliest } = this.how;
    return {
      longest,
      likeliest,
      sampling: { temperature, top_k: k, top_p: p, seed },
      stop: stop ? [stop.replaceAll("\\n", "\n").replaceAll("\\t", "\t")] : [],
    };
  });

  async #read(signal: AbortSignal): Promise<void> {
    const asked: SurpriseRequest = { text: this.text, run: this.run?.name ?? "" };
    const { texts } = await (await call("v1/surprisal", post(asked, signal))).json();
    if (signal.aborted) return;
    this.words = texts[0].words;
    this.status = "read";
  }

  #take(event: WriteEvent): void {
    switch (event.name) {
      case "start": {
        const { begin, given, context } = event.data;
        // As the vocabulary knows it: a space at its end may be gone.
        const words = joined(this.words) === begin ? this.words : kept(this.words, begin);
        this.#show({ text: begin, words });
        this.from = { text: begin, words };
        this.forgotten = given >= context;
        break;
      }
      case "text": {
        const { first, words, text } = event.data;
        // What was read once and has left the window since keeps its colour.
        const known = words.map((word, i) => {
          const old = this.words[first + i];
          return word.bits === undefined && old?.text === word.text ? { ...word, ...old } : word;
        });
        this.words = [...this.words.slice(0, first), ...known];
        this.text += text;
        break;
      }
      case "done":
        this.ending = event.data.ending;
        this.status = "done";
        break;
    }
  }
}
