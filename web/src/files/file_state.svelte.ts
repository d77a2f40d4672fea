// A picture or a recording that a run is asked about, in the views of labels and of boxes: chosen, dropped, drawn, or from a device.

import type { RunInfo } from "$openapi";
import type { Place } from "../page/address";
import { ApiError } from "../page/api";
import { AskedBeside } from "./beside.svelte";

const PAUSE = 120; // ms between two pictures of a drawing or a camera that are asked about

/** Who answers about a file. */
type Ask<Answer> = (
  file: Blob,
  name: string,
  run: string,
  signal: AbortSignal,
  also: Record<string, string>,
) => Promise<Answer>;

export class FileState<Answer> extends AskedBeside {
  run = $state.raw<RunInfo | null>(null);
  /** What is asked about, and how it is called. */
  file = $state.raw<Blob | null>(null);
  name = $state("");
  /** The last answer; while another is waited for, that of the file before. */
  answer = $state.raw<Answer | null>(null);
  status = $state<"empty" | "waiting" | "done" | "error">("empty");
  error = $state.raw<ApiError | null>(null);
  /** There is no text to look into or to put into an address. */
  readonly text = "";

  #request: AbortController | null = null;
  /** What comes while another is asked about: the last of a drawing is never left out. */
  #next: [Blob, string] | null = null;
  #isBusy = false;

  /** `view`: the name of the view that asks. */
  constructor(
    private readonly view: string,
    private readonly ask: Ask<Answer>,
  ) {
    super();
  }

  setRun(run: RunInfo): void {
    if (this.run?.name === run.name) return;
    const isOther = this.run?.reads !== run.reads;
    this.run = run;
    this.showAll();
    if (isOther) {
      this.leaveOut("reading"); // it is told of pictures alone
      this.clear();
    } else this.again();
  }

  /** Ask about a file, in place of any other. */
  give(file: Blob, name: string): void {
    this.#next = null;
    this.#request?.abort();
    void this.#ask(file, name);
  }

  /** Ask about one of many that follow each other, when the one before is answered. */
  then(file: Blob, name: string): void {
    if (this.#isBusy) this.#next = [file, name];
    else void this.#ask(file, name);
  }

  clear(): void {
    this.#request?.abort();
    this.#next = this.error = this.answer = this.file = null;
    this.status = "empty";
  }

  again(): void {
    if (this.file) this.give(this.file, this.name);
  }

  /** An address holds no file. */
  follow(_: Place): void {}

  readonly place = $derived.by(() => ({ view: this.view, run: this.run?.name ?? "" }));

  async #ask(file: Blob, name: string): Promise<void> {
    const request = (this.#request = new AbortController());
    this.#isBusy = true;
    if (file !== this.file) this.showAll();
    Object.assign(this, { file, name, error: null, status: "waiting" });
    try {
      const answer = await this.ask(file, name, this.run?.name ?? "", request.signal, this.also);
      if (request.signal.aborted) return;
      this.answer = answer;
      this.status = this.#next ? "waiting" : "done";
      if (this.#next) await new Promise((done) => setTimeout(done, PAUSE));
    } catch (error) {
      if (request.signal.aborted) return;
      this.#next = this.answer = null;
      this.error = ApiError.of(error);
      this.status = "error";
    } finally {
      if (this.#request === request) this.#isBusy = false;
    }
    if (request.signal.aborted || !this.#next) return;
    const [next, called] = this.#next;
    this.#next = null;
    void this.#ask(next, called);
  }
}
