// What a view asks of a run: of several questions only the last is answered.

import type { RunInfo } from "$openapi";
import type { Given, Place } from "./address";
import { ApiError } from "./api";

export type AskStatus = "empty" | "waiting" | "done" | "error";

/** `More`: what a view can be doing besides. */
export abstract class Ask<More extends string = never> {
  /** What is asked about; empty where that is no text. */
  text = $state("");
  run = $state.raw<RunInfo | null>(null);
  status = $state<AskStatus | More>("empty");
  error = $state.raw<ApiError | null>(null);

  #timer: ReturnType<typeof setTimeout> | undefined;
  #request: AbortController | null = null;

  /** `view`: the name of the view that asks. */
  constructor(readonly view: string) {}

  /** What went wrong; a key that is lacking is asked for elsewhere. */
  get failure(): ApiError | null {
    return this.error?.status === 403 ? null : this.error;
  }

  /** Whether an answer is on its way. */
  get isBusy(): boolean {
    return this.status === "waiting";
  }

  /** Whether nothing is asked about yet. */
  get isEmpty(): boolean {
    return !this.text.trim();
  }

  /** Ask the same again. */
  abstract again(): void;

  /** Ask about a text, where one is asked about. */
  setText(_: string): void {}

  /** Show what becomes of an example. */
  begin(text: string): void {
    this.setText(text);
  }

  /** Put a word behind the text. */
  add(word: string): void {
    this.setText(`${this.text.trimEnd()} ${word}`.trimStart());
  }

  setRun(run: RunInfo): void {
    if (this.run?.name === run.name && this.run.target === run.target) return;
    this.run = run;
    this.forget();
    this.again();
  }

  /** Another run is asked: forget what the run before has told. */
  protected forget(): void {}

  /** Show what an address holds. */
  follow(_: Place): void {}

  /** What an address has to hold. */
  get place(): Given {
    return { view: this.view, run: this.run?.name ?? "", text: this.text };
  }

  /** Give up what is asked, or is about to be. */
  cancel(): void {
    clearTimeout(this.#timer);
    this.#request?.abort();
  }

  /** Do something after a pause, unless something else is to be done before. */
  protected soon(pause: number, work: () => unknown): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(work, pause);
  }

  /** Ask the server, in place of what was asked before -> whether nothing has taken its place since. */
  protected async go(work: (signal: AbortSignal) => Promise<void>): Promise<boolean> {
    this.cancel();
    this.error = null;
    const { signal } = (this.#request = new AbortController());
    try {
      await work(signal);
    } catch (error) {
      if (!signal.aborted) this.failed(ApiError.of(error));
    }
    return !signal.aborted;
  }

  protected failed(error: ApiError): void {
    this.error = error;
    this.status = "error";
  }
}

const PAUSE = 250; // ms without a key before a text is asked about

/** A question about a text, asked as it is typed. */
export class AskText<Answer> extends Ask {
  /** The last answer; while another is waited for, that of the text before. */
  answer = $state.raw<Answer | null>(null);
  /** What is set for the answer, as an address holds it; empty: all is as usual. */
  also = $state.raw<Record<string, string>>({});

  constructor(
    view: string,
    private readonly ask: (text: string, run: string, signal: AbortSignal, also: Record<string, string>) => Promise<Answer>,
    /** What an address may set. */
    private readonly known: (also: Record<string, string>) => Record<string, string> = () => ({}),
  ) {
    super(view);
  }

  /** Whether there is something to ask about. */
  protected isWhole(text: string): boolean {
    return text.trim() !== "";
  }

  override setText(text: string): void {
    this.text = text;
    this.#soon(PAUSE);
  }

  /** Set something otherwise, and ask again. */
  set(also: Record<string, string>): void {
    if (JSON.stringify(also) === JSON.stringify(this.also)) return;
    this.also = also;
    this.again();
  }

  again(): void {
    this.#soon(0);
  }

  override follow({ text, more }: Place): void {
    const also = this.known(more);
    if (text === this.text) return this.set(also);
    this.also = also;
    this.setText(text);
  }

  override get place(): Given {
    return { ...super.place, more: this.also };
  }

  protected override forget(): void {
    this.answer = null;
  }

  protected override failed(error: ApiError): void {
    this.answer = null;
    super.failed(error);
  }

  #soon(pause: number): void {
    this.cancel();
    this.error = null;
    const { run, text } = this;
    if (!run || !this.isWhole(text)) {
      this.answer = null;
      this.status = "empty";
      return;
    }
    this.status = "waiting";
    this.soon(pause, () => this.go((signal) => this.#take(text, run.name, signal)));
  }

  async #take(text: string, run: string, signal: AbortSignal): Promise<void> {
    const answer = await this.ask(text, run, signal, this.also);
    if (signal.aborted) return;
    this.answer = answer;
    this.status = "done";
  }
}
