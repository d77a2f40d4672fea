// A recording that a run is asked about, and what is said in it, as it becomes known.

import type { RunInfo } from "$openapi";
import type { Place } from "../page/address";
import { ApiError } from "../page/api";
import { AskedBeside } from "../files/beside.svelte";
import type { Recorder } from "../files/recorder.svelte";
import { later, settledOf, transcribe, type Segment } from "./transcribe";

const PERIOD = 700; // ms between two questions while somebody speaks
const LEAST = 0.4; // seconds that are worth asking about
const QUIET = 5; // seconds without a word, of which no more than the last one is kept

export class TranscriberState extends AskedBeside {
  run = $state.raw<RunInfo | null>(null);
  /** What is asked about, and how it is called. */
  file = $state.raw<Blob | null>(null);
  name = $state("");
  segments = $state.raw<Segment[]>([]);
  /** How many of them stay as they are: all but where somebody still speaks. */
  settled = $state(0);
  /** Of the recording, once it is known. */
  seconds = $state(0);
  status = $state<"empty" | "waiting" | "listening" | "done" | "error">("empty");
  error = $state.raw<ApiError | null>(null);
  /** There is no text to look into or to put into an address. */
  readonly text = "";

  #request: AbortController | null = null;

  setRun(run: RunInfo): void {
    if (this.run?.name === run.name) return;
    this.run = run;
    this.showAll();
    this.again();
  }

  /** Ask about a recording, in place of any other. */
  give(file: Blob, name: string): void {
    this.#request?.abort();
    void this.#ask(file, name);
  }

  clear(): void {
    this.#request?.abort();
    Object.assign(this, { file: null, name: "", segments: [], settled: 0, seconds: 0, error: null, status: "empty" });
  }

  /** Captions while somebody speaks: what is not settled yet is asked about over and over. */
  async listen(recorder: Recorder): Promise<void> {
    this.clear();
    const request = (this.#request = new AbortController());
    this.status = "listening";
    let from = 0;
    try {
      while (recorder.isOn && !request.signal.aborted) {
        const to = recorder.seconds;
        if (to - from >= LEAST) from = await this.#hear(recorder, from, to, request.signal);
        await new Promise((done) => setTimeout(done, PERIOD));
      }
    } catch (error) {
      if (request.signal.aborted) return;
      this.error = ApiError.of(error);
      this.status = "error";
    }
  }

  /** Ask about the rest of a recording -> from when on it is asked about again. */
  async #hear(recorder: Recorder, from: number, to: number, signal: AbortSignal): Promise<number> {
    const run = this.run;
    const rest = await recorder.since(from, run?.takes?.rate ?? 16000);
    if (!rest || signal.aborted) return from;
    const heard: Segment[] = [];
    await transcribe(rest, "microphone.wav", run?.name ?? "", !!run?.takes?.words, signal, (one) => heard.push(later(one, from)));
    if (signal.aborted) return from;
    const firm = this.segments.slice(0, this.settled);
    const count = settledOf(heard, to);
    this.segments = [...firm, ...heard];
    this.settled = firm.length + count;
    const last = heard[count - 1];
    if (!heard.length && to - from > QUIET) return to - 1;
    // The sound of the last word goes on for a moment behind its end.
    return last ? Math.min(to, (last.words?.at(-1)?.end ?? last.end) + 0.1) : from;
  }

  again(): void {
    if (this.file) this.give(this.file, this.name);
  }

  /** An address holds no file. */
  follow(_: Place): void {}

  readonly place = $derived.by(() => ({ view: "transcribe" as const, run: this.run?.name ?? "" }));

  async #ask(file: Blob, name: string): Promise<void> {
    const request = (this.#request = new AbortController());
    // Asked about again, a recording keeps its text until the new one comes.
    const isSame = file === this.file;
    const segments = isSame ? this.segments : [];
    if (!isSame) this.showAll();
    const heard: Segment[] = [];
    Object.assign(this, { file, name, segments, settled: 0, seconds: 0, error: null, status: "waiting" });
    try {
      const { run } = this;
      const seconds = await transcribe(file, name, run?.name ?? "", !!run?.takes?.words, request.signal, (segment) => {
        if (request.signal.aborted) return;
        heard.push(segment);
        this.segments = [...heard];
        this.settled = this.segments.length;
      }, this.also);
      if (request.signal.aborted) return;
      Object.assign(this, { segments: heard, seconds, status: "done" });
    } catch (error) {
      if (request.signal.aborted) return;
      Object.assign(this, { segments: heard, error: ApiError.of(error), status: "error" });
    }
  }
}
