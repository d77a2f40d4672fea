// A recording that a run is asked about, and what is said in it, as it becomes known.

import type { ApiError } from "../page/api";
import { AskFile, type Question } from "../files/ask_file.svelte";
import type { Recorder } from "../files/recorder.svelte";
import { later, settledOf, transcribe, type Segment } from "./transcribe";

const PERIOD = 700; // ms between two questions while somebody speaks
const LEAST = 0.4; // seconds that are worth asking about
const QUIET = 5; // seconds without a word, of which no more than the last one is kept

interface Heard {
  segments: Segment[];
  /** How many of them stay as they are: all but where somebody still speaks. */
  settled: number;
  /** Of the recording; 0 until it is known. */
  seconds: number;
}

async function hear(asked: Question, signal: AbortSignal, onpart: (heard: Heard) => void): Promise<Heard> {
  const segments: Segment[] = [];
  const seconds = await transcribe(asked, signal, (segment) => {
    segments.push(segment);
    onpart({ segments: [...segments], settled: segments.length, seconds: 0 });
  });
  return { segments, settled: segments.length, seconds };
}

export class AskRecording extends AskFile<Heard, "listening"> {
  constructor() {
    super("transcribe", hear);
  }

  /** Asked about again, a recording keeps its text until the new one comes. */
  override give(file: Blob, name: string): void {
    this.answer = file === this.file && this.answer ? { ...this.answer, settled: 0, seconds: 0 } : null;
    super.give(file, name);
  }

  override clear(): void {
    super.clear();
    this.name = "";
  }

  /** Captions while somebody speaks: what is not settled yet is asked about over and over. */
  override async listen(recorder: Recorder): Promise<void> {
    this.clear();
    this.status = "listening";
    let from = 0;
    await this.go(async (signal) => {
      while (recorder.isOn && !signal.aborted) {
        const to = recorder.seconds;
        if (to - from >= LEAST) from = await this.#hear(recorder, from, to, signal);
        await new Promise((done) => setTimeout(done, PERIOD));
      }
    });
  }

  /** Ask about the rest of a recording -> from when on it is asked about again. */
  async #hear(recorder: Recorder, from: number, to: number, signal: AbortSignal): Promise<number> {
    const { run } = this;
    const file = run && (await recorder.since(from, run.takes?.rate ?? 16000));
    if (!file || signal.aborted) return from;
    const heard: Segment[] = [];
    await transcribe({ file, name: "microphone.wav", run, also: {} }, signal, (one) => heard.push(later(one, from)));
    if (signal.aborted) return from;
    const firm = this.answer?.segments.slice(0, this.answer.settled) ?? [];
    const count = settledOf(heard, to);
    this.answer = { segments: [...firm, ...heard], settled: firm.length + count, seconds: 0 };
    const last = heard[count - 1];
    if (!heard.length && to - from > QUIET) return to - 1;
    // The sound of the last word goes on for a moment behind its end.
    return last ? Math.min(to, (last.words?.at(-1)?.end ?? last.end) + 0.1) : from;
  }

  /** What was heard before it failed stays. */
  protected override failed(error: ApiError): void {
    const heard = this.answer?.settled || this.status === "listening" ? this.answer : null;
    super.failed(error);
    this.answer = heard;
  }
}
