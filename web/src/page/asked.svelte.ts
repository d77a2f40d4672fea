// A text that a run is asked about as it is typed: what the views of labels, blanks, trees and tags
// share.

import type { RunInfo } from "$openapi";
import type { Given, Place } from "./address";
import { ApiError } from "./api";

const PAUSE = 250; // ms without a key before a text is asked about

export type AskedStatus = "empty" | "waiting" | "done" | "error";

export class Asked<Answer> {
  text = $state("");
  run = $state.raw<RunInfo | null>(null);
  /** The last answer; while another is waited for, that of the text before. */
  answer = $state.raw<Answer | null>(null);
  status = $state<AskedStatus>("empty");
  error = $state.raw<ApiError | null>(null);

  #timer: ReturnType<typeof setTimeout> | undefined;
  #request: AbortController | null = null;

  /** `view`: the name of the view that asks. `isWhole`: whether there is something to ask about. */
  constructor(
    readonly view: string,
    private readonly ask: (text: string, run: string, signal: AbortSignal) => Promise<Answer>,
    private readonly isWhole: (text: string) => boolean = (text) => text.trim() !== "",
  ) {}

  setText(text: string): void {
    this.text = text;
    this.#soon(PAUSE);
  }

  setRun(run: RunInfo): void {
    if (this.run?.name === run.name) return;
    this.run = run;
    this.answer = null;
    this.#soon(0);
  }

  again(): void {
    this.#soon(0);
  }

  /** Show what an address holds. */
  follow({ text }: Place): void {
    if (text !== this.text) this.setText(text);
  }

  /** What an address has to hold. */
  readonly place: Given = $derived.by(() => ({ view: this.view, run: this.run?.name ?? "", text: this.text }));

  #soon(pause: number): void {
    clearTimeout(this.#timer);
    this.#request?.abort();
    this.error = null;
    const { run, text } = this;
    if (!run || !this.isWhole(text)) {
      this.answer = null;
      this.status = "empty";
      return;
    }
    const request = (this.#request = new AbortController());
    this.status = "waiting";
    this.#timer = setTimeout(() => void this.#go(text, run.name, request.signal), pause);
  }

  async #go(text: string, run: string, signal: AbortSignal): Promise<void> {
    try {
      const answer = await this.ask(text, run, signal);
      if (signal.aborted) return;
      this.answer = answer;
      this.status = "done";
    } catch (error) {
      if (signal.aborted) return;
      this.answer = null;
      this.error = ApiError.of(error);
      this.status = "error";
    }
  }
}
