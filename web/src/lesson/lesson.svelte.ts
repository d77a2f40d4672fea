// The lesson that is open: its numbers, the step that is read, and what a visitor guessed and chose.

import type { Lesson, LessonModel, LessonRequest, LessonSentence, RunInfo } from "$openapi";
import { untrack } from "svelte";
import { call, post, type ApiError } from "../page/api";
import { Ask } from "../page/ask.svelte";
import type { Place } from "../page/address";
import type { Grid } from "../drawing/numbers";
import { pieceLabel } from "../look/look";

export const PAPER = "The animal didn't cross the street because it was too tired.";
export const STEPS = 10;

/** A part of the model that a step lights on the stage. */
export type Lit = "pieces" | "positions" | "encoder" | "feed-forward" | "norm" | "decoder" | "cross" | "output" | "all";

/** What each step lights. */
export const LIT: Lit[] = ["pieces", "positions", "encoder", "encoder", "encoder", "norm", "decoder", "cross", "output", "all"];

/** How much ink lies behind the tokens of both sentences, from 0 to 1, and which tokens are framed. */
export interface Ink {
  source?: readonly number[];
  target?: readonly number[];
  focus?: { source?: number; target?: number };
  /** The layer and the head that are lit. */
  at?: { layer: number; head: number | null };
}

/** Lessons that stand in the file that is read; null on a page that a server gives. */
function embedded(): Lesson[] | null {
  const inside = document.getElementById("lessons")?.textContent;
  return inside ? (JSON.parse(inside) as Lesson[]) : null;
}

/** What was guessed about each run, by step, for as long as the page is open. */
const guessed = $state<Record<string, Record<number, string>>>({});

export class LessonState extends Ask {
  lesson = $state.raw<Lesson | null>(null);
  step = $state(1);
  inks = $state.raw<Record<number, Ink>>({});
  /** A step that a link names, as long as it is not shown. */
  wanted = $state(0);
  /** All runs that the server has; none in a file. */
  runs: RunInfo[] = [];
  readonly file = embedded();
  /** The teacher's sheet: all answers, and nothing to try. */
  readonly isSheet = document.body.dataset.sheet !== undefined;
  #asked: LessonRequest = { run: "", text: "" };
  /** Those that were shown, by the run and the sentence that were asked for. */
  #known = new Map((this.file ?? []).map((lesson) => [`${lesson.model.name} ${lesson.sentence.text}`, lesson]));

  constructor() {
    super("lesson");
    this.lesson = this.file?.[0] ?? null;
  }

  /** Show the lesson of a run about the first sentence of a text. */
  open(run: string, text: string): void {
    if (run === this.#asked.run && text === this.#asked.text) return;
    this.#asked = { run, text };
    this.again();
  }

  again(): void {
    void this.go((signal) => this.#show(this.#asked, signal));
  }

  async #show(request: LessonRequest, signal: AbortSignal): Promise<void> {
    const asked = `${request.run} ${request.text}`;
    const known = this.#known.get(asked) ?? this.file?.[0];
    if (!known) this.status = "waiting";
    const lesson: Lesson = known ?? (await (await call("v1/lesson", post(request, signal))).json());
    this.#known.set(asked, lesson);
    if (signal.aborted) return;
    guessed[lesson.model.name] ??= {};
    this.lesson = lesson;
    this.status = "done";
  }

  protected override failed(error: ApiError): void {
    this.lesson = null;
    super.failed(error);
  }

  get guesses(): Record<number, string> {
    return guessed[this.lesson?.model.name ?? ""] ?? {};
  }

  /** Whether the answer of a step is shown. */
  isOpen(step: number): boolean {
    return this.isSheet || this.guesses[step] !== undefined;
  }

  ink(step: number, ink: Ink): void {
    this.inks = { ...untrack(() => this.inks), [step]: ink };
  }

  /** Show what an address holds. */
  override follow({ more }: Place): void {
    const step = Number(more.step);
    this.wanted = step >= 1 && step <= STEPS ? step : 0;
  }

  get more(): Record<string, string> {
    return this.step > 1 ? { step: String(this.step) } : {};
  }
}

/** Tokens as they are shown: the first piece of a word bare, what continues it after dots. */
export function labels(tokens: readonly string[]): string[] {
  return tokens.map(pieceLabel);
}

/** The words of the sentence, with the end symbol. */
export function sourceWords({ tokens, words }: LessonSentence): string[] {
  const out: string[] = [];
  tokens.forEach((token, i) => {
    const word = words[i] ?? 0;
    out[word] = (out[word] ?? "") + token.replaceAll("\u2581", "");
  });
  return out;
}

export const bare = (word = ""): string => word.replace(/(?<=.)[.,;:!?]+$/u, "");

/** A token in place of the one that the lesson is about, as it is shown. */
export const labelThere = ({ place }: LessonSentence, token = ""): string => pieceLabel(token, place);

/** The token of the translation that the lesson is about, as it is shown. */
export const placeToken = (sentence: LessonSentence): string => labelThere(sentence, sentence.output_tokens[sentence.place]);

/** The probability of that token. */
export const probability = ({ probabilities, place }: LessonSentence): number => probabilities[place] ?? 0;

/** A value at the token that the lesson is about, and none at the others. */
export const atPlace = ({ output_tokens, place }: LessonSentence, value: number): number[] => output_tokens.map((_, i) => (i === place ? value : 0));

/** One of the sizes of a run. */
export const size = (model: LessonModel, name: string): number => Number(model.sizes[name] ?? 0);

/** Rows of a matrix as the page draws it. */
export function gridOf(rows: readonly (readonly number[])[]): Grid {
  return { rows: rows.length, columns: rows[0]?.length ?? 0, values: Float32Array.from(rows.flat()) };
}
