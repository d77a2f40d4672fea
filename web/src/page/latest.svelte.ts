// The answer to the last of several questions: those before it are given up.

import { ApiError } from "./api";

export class Latest<Answer> {
  answer = $state.raw<Answer | null>(null);
  error = $state.raw<ApiError | null>(null);
  isAsked = $state(false);
  #request: AbortController | null = null;

  /** Give up the question, and forget what was answered. */
  forget(): void {
    this.#request?.abort();
    this.answer = this.error = null;
    this.isAsked = false;
  }

  async ask(work: (signal: AbortSignal) => Promise<Answer>): Promise<void> {
    this.forget();
    const { signal } = (this.#request = new AbortController());
    this.isAsked = true;
    try {
      const answer = await work(signal);
      if (!signal.aborted) this.answer = answer;
    } catch (error) {
      if (!signal.aborted) this.error = ApiError.of(error);
    }
    if (!signal.aborted) this.isAsked = false;
  }
}
