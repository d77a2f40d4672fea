// A picture or a recording that a run is asked about: chosen, dropped, drawn, or from a device.

import type { RunInfo } from "$openapi";
import type { Given, Place } from "../page/address";
import { Ask } from "../page/ask.svelte";
import { call, send, type ApiError } from "../page/api";
import type { Recorder } from "./recorder.svelte";

const PAUSE = 120; // ms between two pictures of a drawing or a camera that are asked about

/** A file and its name, as what is asked about. */
export interface Question {
  file: Blob;
  name: string;
  run: RunInfo;
  /** What is asked beside the file, by the names of the API's fields. */
  also: Record<string, string>;
}

/** Ask about a file. */
export async function sent(path: string, { file, name, also }: Question, fields: Record<string, string>, signal: AbortSignal): Promise<Response> {
  return send(path, file, name, { ...fields, ...also }, signal);
}

/** Who answers about a file; `onpart` takes what is known of the answer so far. */
type Answers<Answer> = (asked: Question, signal: AbortSignal, onpart: (answer: Answer) => void) => Promise<Answer>;

export class AskFile<Answer, More extends string = never> extends Ask<More> {
  /** What is asked about, and how it is called. */
  file = $state.raw<Blob | null>(null);
  name = $state("");
  /** The last answer; while another is waited for, that of the file before. */
  answer = $state.raw<Answer | null>(null);
  also = $state.raw<Record<string, string>>({});
  /** The last answer for a file of which nothing is hidden. */
  whole = $state.raw<Answer | null>(null);
  /** The cells of the file that a click hides from the model. */
  readonly hidden: ReadonlySet<number> = $derived(new Set(this.also.hidden?.split(",").map(Number)));

  /** What comes while another is asked about: the last of a drawing is never left out. */
  #next: [Blob, string] | null = null;
  #isBusy = false;

  constructor(
    view: string,
    private readonly ask: Answers<Answer>,
    /** Of what is asked beside the file, the names that an address holds. */
    private readonly known: readonly string[] = [],
  ) {
    super(view);
  }

  override setRun(run: RunInfo): void {
    if (this.run?.reads !== run.reads) {
      this.#set({ reading: "" }); // it is told of pictures alone
      this.clear();
    }
    super.setRun(run);
  }

  protected override forget(): void {
    this.#showAll();
  }

  override follow({ more }: Place): void {
    this.askAlso(Object.fromEntries(this.known.map((name) => [name, more[name] ?? ""])));
  }

  override get place(): Given {
    const more = Object.fromEntries(this.known.map((name) => [name, this.also[name] ?? ""]));
    return { ...super.place, more };
  }

  override get isEmpty(): boolean {
    return !this.file;
  }

  /** Show what becomes of the file that the run keeps as an example. */
  override begin(name: string): void {
    const { run } = this;
    if (!run) return;
    void this.go(async (signal) => {
      const answer = await call(`v1/runs/${encodeURIComponent(run.name)}/example`, { signal });
      if (answer.status === 200) this.give(await answer.blob(), name);
    });
  }

  /** Ask about a file, in place of any other. */
  give(file: Blob, name: string): void {
    this.#next = null;
    void this.#ask(file, name);
  }

  /** Ask about one of many that follow each other, when the one before is answered. */
  then(file: Blob, name: string): void {
    if (this.#isBusy) this.#next = [file, name];
    else void this.#ask(file, name);
  }

  clear(): void {
    this.cancel();
    this.#isBusy = false;
    this.#next = this.error = this.answer = this.file = null;
    this.status = "empty";
  }

  again(): void {
    if (this.file) this.give(this.file, this.name);
  }

  /** Ask about the same file again, and for this too; "" leaves a field out. */
  askAlso(fields: Record<string, string>): void {
    this.#set(fields);
    this.again();
  }

  /** Hide a cell, or show it again. */
  hide(cell: number): void {
    const cells = new Set(this.hidden);
    if (!cells.delete(cell)) cells.add(cell);
    this.askAlso({ hidden: [...cells].join(",") });
  }

  /** A recording has begun. */
  async listen(_: Recorder): Promise<void> {}

  protected override failed(error: ApiError): void {
    this.#next = this.answer = null;
    super.failed(error);
  }

  #set(fields: Record<string, string>): void {
    this.also = Object.fromEntries(Object.entries({ ...this.also, ...fields }).filter(([, value]) => value));
  }

  /** Other files and runs have other cells: for them none is hidden. */
  #showAll(): void {
    this.#set({ hidden: "", at: "" });
  }

  async #ask(file: Blob, name: string): Promise<void> {
    const { run } = this;
    if (!run) return;
    this.#isBusy = true;
    if (file !== this.file) this.#showAll();
    Object.assign(this, { file, name, status: "waiting" });
    const isLast = await this.go(async (signal) => {
      const onpart = (answer: Answer): void => void (signal.aborted || (this.answer = answer));
      const answer = await this.ask({ file, name, run, also: this.also }, signal, onpart);
      if (signal.aborted) return;
      this.answer = answer;
      if (!this.also.hidden) this.whole = answer;
      this.status = this.#next ? "waiting" : "done";
      if (this.#next) await new Promise((done) => setTimeout(done, PAUSE));
    });
    if (!isLast) return;
    this.#isBusy = false;
    const next = this.#next;
    this.#next = null;
    if (next) void this.#ask(...next);
  }
}
