// Text in, sentences out as they grow, choices kept.

import type { Hypothesis, TranslateRequest } from "$openapi";
import type { Event } from "./translate";
import type { Place } from "../page/address";
import { ApiError, call, events, post } from "../page/api";
import { Ask } from "../page/ask.svelte";
import { into } from "../page/chosen.svelte";

const PAUSE = 160; // ms without a key before a request goes out
const N_BEST = 4;
const CONTINUATIONS = 6;
/** What the server says where a text is too long for all that is asked beside its translation. */
const TOO_MUCH = ["too_costly", "too_many_translations"];

export interface Shown {
  source: string;
  behind: string;
  /** What it looks like while it is searched. */
  draft: string;
  /** What stood here before: shown faintly behind the draft, so that nothing jumps. */
  stale: string;
  /** The n best, best first; empty while it is searched. */
  hypotheses: Hypothesis[];
  /** The one that is shown: an entry of `hypotheses`, or one that a person forced. */
  chosen: Hypothesis | null;
  isForced: boolean;
}

export class AskTranslation extends Ask<"growing"> {
  before = $state("");
  sentences = $state.raw<Shown[]>([]);
  /** Whether the text is so long that it is translated alone: no doubts, no other translations. */
  isBare = $state(false);

  /** Whether what stands there is the translation of a text before this one. */
  readonly isOld = $derived(this.status === "waiting" && this.sentences.length > 0);

  override get isBusy(): boolean {
    return this.status === "waiting" || this.status === "growing";
  }

  get target(): string {
    return (
      this.before +
      this.sentences.map((s) => (s.chosen ? s.chosen.text : s.draft) + s.behind).join("")
    );
  }

  override setText(text: string): void {
    this.text = text;
    this.#soon(text.trim() ? PAUSE : 0);
  }

  protected override forget(): void {
    this.sentences = [];
  }

  again(): void {
    this.#soon(0);
  }

  override follow({ text }: Place): void {
    if (text && text !== this.text) this.setText(text);
  }

  /** Show another translation of a sentence. */
  choose(index: number, hypothesis: Hypothesis): void {
    this.#change(index, { chosen: hypothesis, isForced: !this.sentences[index]?.hypotheses.includes(hypothesis) });
    if (!hypothesis.warnings) void this.#proofread(index, hypothesis);
  }

  /** Back to what the model thinks best. */
  undo(index: number): void {
    const best = this.sentences[index]?.hypotheses[0];
    if (best) this.#change(index, { chosen: best, isForced: false });
  }

  /** What else could stand where token `place` of a sentence stands, each written to its end. */
  async continuations(index: number, place: number, signal: AbortSignal): Promise<Hypothesis[]> {
    const sentence = this.sentences[index];
    if (!sentence?.chosen) return [];
    const begin = sentence.chosen.tokens.slice(0, place);
    return this.#ask(sentence.source, begin, { alternatives: true, n_best: CONTINUATIONS, beam: 2 }, signal);
  }

  /** Ask what is doubtful about a translation that is not the best, and so was not proofread. */
  async #proofread(index: number, hypothesis: Hypothesis): Promise<void> {
    const source = this.sentences[index]?.source ?? "";
    // Where that fails, what is shown stays, without warnings.
    const [read] = await this.#ask(source, hypothesis.tokens, { beam: 1, warnings: true }).catch(() => []);
    const sentence = this.sentences[index];
    if (sentence?.source !== source || sentence.chosen !== hypothesis) return;
    if (read?.text !== hypothesis.text) return; // it was gone on with
    const chosen = { ...hypothesis, warnings: read.warnings ?? [], words: read.words };
    const hypotheses = sentence.hypotheses.map((one) => (one === hypothesis ? chosen : one));
    this.#change(index, { hypotheses, chosen });
  }

  /** Translations of one sentence that begin with some tokens. */
  async #ask(text: string, begin: Hypothesis["tokens"], more: Partial<TranslateRequest>, signal?: AbortSignal): Promise<Hypothesis[]> {
    if (!this.run) return [];
    const { name, source } = this.run;
    const prefix_tokens = begin.map((token) => token.id);
    const asked: TranslateRequest = { text, run: name, source, ...into(this.run), whole: true, prefix_tokens, ...more };
    const { translations } = await (await call("v1/translate", post(asked, signal))).json();
    return translations[0].sentences[0]?.hypotheses ?? [];
  }

  #soon(pause: number): void {
    if (this.text.trim()) this.status = "waiting";
    this.soon(pause, () => this.go((signal) => this.#translate(signal)));
  }

  async #translate(signal: AbortSignal): Promise<void> {
    this.isBare = false;
    if (!this.text.trim() || !this.run) {
      this.#clear();
      this.status = "empty";
      return;
    }
    this.status = "waiting";
    const { name, source, beam } = this.run;
    const { text } = this;
    const asked: TranslateRequest = { text, run: name, source, ...into(this.run) };
    // More than the beam would widen it, and so change the translation.
    const more = { n_best: Math.min(N_BEST, beam), warnings: true };
    try {
      for await (const event of events<Event>("v1/translate", { ...asked, ...more }, signal)) this.#take(event, text);
    } catch (error) {
      this.isBare = error instanceof ApiError && TOO_MUCH.includes(error.code);
      if (!this.isBare) throw error;
      for await (const event of events<Event>("v1/translate", asked, signal)) this.#take(event, text);
    }
  }

  /** What stands there is not of this text. */
  protected override failed(error: ApiError): void {
    this.#clear();
    super.failed(error);
  }

  #clear(): void {
    this.sentences = [];
    this.before = "";
  }

  #take(event: Event, text: string): void {
    switch (event.name) {
      case "start": {
        // A sentence that stands as it stood keeps its translation, and what was chosen for it.
        const old = new Map(this.sentences.filter((s) => s.chosen).map((s) => [s.source, s]));
        this.before = event.data.before ?? "";
        this.sentences = event.data.sentences.map(({ source, behind }, index) => {
          const known = old.get(source);
          if (known) return { ...known, behind };
          const before = this.sentences[index];
          const stale = before?.chosen?.text ?? before?.stale ?? "";
          return { source, behind, draft: "", stale, hypotheses: [], chosen: null, isForced: false };
        });
        this.status = "growing";
        break;
      }
      case "draft":
        if (!this.sentences[event.data.sentence]?.chosen) this.#change(event.data.sentence, { draft: event.data.text });
        break;
      case "sentence": {
        const sentence = this.sentences[event.data.sentence];
        const found = event.data.hypotheses[0];
        if (!sentence || !found) break;
        // What was said of the same translation stands until it is said again.
        const before = sentence.hypotheses[0];
        const best = before?.text === found.text && before.warnings ? before : found;
        const chosen = sentence.isForced && sentence.chosen ? sentence.chosen : best;
        const hypotheses = [best, ...event.data.hypotheses.slice(1)];
        this.#change(event.data.sentence, { hypotheses, chosen });
        break;
      }
      case "warnings": {
        const sentence = this.sentences[event.data.sentence];
        const best = sentence?.hypotheses[0];
        if (!sentence || !best) break;
        const { warnings, words } = event.data;
        const read = { ...best, warnings, words };
        const chosen = sentence.chosen === best ? read : sentence.chosen;
        const hypotheses = [read, ...sentence.hypotheses.slice(1)];
        this.#change(event.data.sentence, { hypotheses, chosen });
        break;
      }
      case "done":
        // While somebody types on, what was asked before still comes in.
        if (text === this.text) this.status = "done";
        break;
    }
  }

  #change(index: number, changed: Partial<Shown>): void {
    this.sentences = this.sentences.map((sentence, i) => (i === index ? { ...sentence, ...changed } : sentence));
  }
}
