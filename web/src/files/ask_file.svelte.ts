// A picture or a recording that a run is asked about: chosen, dropped, drawn, or from a device.

import type { RunInfo } from "$openapi";
import { Ask } from "../page/ask.svelte";
import { call, type ApiError } from "../page/api";

const PAUSE = 120; // ms between two pictures of a drawing or a camera that are asked about

/** A file and its name, as what is asked about. */
export interface Question {
  file: Blob;
  name: string;
  run: RunInfo;
  /** What is asked beside the file, by the names of the API's fields. */
  also: Record<string, string>;
}

/** Send a file in a form. */
export async function send(path: string, asked: Question, fields: Record<string, string>, signal: AbortSignal): Promise<Response> {
  const body = new FormData();
  for (const [field, value] of Object.entries({ ...fields, ...asked.also })) body.set(field, value);
  body.set("file", asked.file, asked.name);
  return call(path, { method: "POST", body, signal });
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

  /** What comes while another is asked about: the last of a drawing is never left out. */
  #next: [Blob, string] | null = null;
  #isBusy = false;

  constructor(
    view: string,
    private readonly ask: Answers<Answer>,
  ) {
    super(view);
  }

  override setRun(run: RunInfo): void {
    if (this.run?.reads !== run.reads) {
      this.leaveOut("reading"); // it is told of pictures alone
      this.clear();
    }
    super.setRun(run);
  }

  protected override forget(): void {
    this.#showAll();
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

  /** Ask about the same file again, and for this too; "" leaves it out. */
  askAlso(field: string, value: string): void {
    this.#set(field, value);
    this.again();
  }

  /** From now on; what is seen stays until something is asked. */
  leaveOut(field: string): void {
    this.#set(field, "");
  }

  protected override failed(error: ApiError): void {
    this.#next = this.answer = null;
    super.failed(error);
  }

  #set(field: string, value: string): void {
    const { [field]: _, ...others } = this.also;
    this.also = value ? { ...others, [field]: value } : others;
  }

  /** Other files and runs have other cells: for them none is hidden. */
  #showAll(): void {
    this.leaveOut("hidden");
    this.leaveOut("at");
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

/** The cells of a file that a click hides from the model. */
export class Hiding {
  /** Whether cells can be clicked. */
  isOn = $state(false);

  constructor(private readonly asked: () => AskFile<unknown, string>) {}

  readonly cells: ReadonlySet<number> = $derived.by(() => {
    const told = this.asked().also["hidden"];
    return new Set(told ? told.split(",").map(Number) : []);
  });

  hide(cell: number): void {
    const cells = new Set(this.cells);
    if (!cells.delete(cell)) cells.add(cell);
    this.asked().askAlso("hidden", [...cells].join(","));
  }

  showAll(): void {
    if (this.cells.size) this.asked().askAlso("hidden", "");
  }

  /** What is done when it was switched on or off. */
  switched(): void {
    if (!this.isOn) this.showAll();
  }
}
