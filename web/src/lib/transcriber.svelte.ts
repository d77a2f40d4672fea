// A recording that a run is asked about, and what is said in it, as it becomes known.

import { viewFor, type Place } from "./address";
import { ApiError, type RunInfo } from "./api";
import { transcribe, type Segment } from "./transcribe";

export class TranscriberState {
  run = $state.raw<RunInfo | null>(null);
  /** What is asked about, and how it is called. */
  file = $state.raw<Blob | null>(null);
  name = $state("");
  segments = $state.raw<Segment[]>([]);
  /** Of the recording, once it is known. */
  seconds = $state(0);
  status = $state<"empty" | "waiting" | "done" | "error">("empty");
  error = $state.raw<ApiError | null>(null);
  /** There is no text to look into or to put into an address. */
  readonly text = "";

  #request: AbortController | null = null;

  setRun(run: RunInfo): void {
    if (viewFor(run) !== "transcribe" || this.run?.name === run.name) return;
    this.run = run;
    this.again();
  }

  /** Ask about a recording, in place of any other. */
  give(file: Blob, name: string): void {
    this.#request?.abort();
    void this.#ask(file, name);
  }

  clear(): void {
    this.#request?.abort();
    Object.assign(this, { file: null, name: "", segments: [], seconds: 0, error: null, status: "empty" });
  }

  again(): void {
    if (this.file) this.give(this.file, this.name);
  }

  /** An address holds no file. */
  follow(_: Place): void {}

  readonly place = $derived.by(() => ({ view: "transcribe" as const, run: this.run?.name ?? "" }));

  async #ask(file: Blob, name: string): Promise<void> {
    const request = (this.#request = new AbortController());
    Object.assign(this, { file, name, segments: [], seconds: 0, error: null, status: "waiting" });
    try {
      const { run } = this;
      const seconds = await transcribe(file, name, run?.name ?? "", !!run?.takes?.words, request.signal, (segment) => {
        if (!request.signal.aborted) this.segments = [...this.segments, segment];
      });
      if (request.signal.aborted) return;
      Object.assign(this, { seconds, status: "done" });
    } catch (error) {
      if (request.signal.aborted) return;
      this.error = ApiError.of(error);
      this.status = "error";
    }
  }
}
