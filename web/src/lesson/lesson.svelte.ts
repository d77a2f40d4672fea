// The lesson that is open: its numbers, the step that is read, and what a visitor guessed and chose.

import type { Lesson, LessonModel, LessonSentence } from "$openapi";
import { untrack } from "svelte";
import { call, post, ApiError } from "../page/api";
import type { Place } from "../page/address";
import { pieceLabel } from "../look/look";
import { preferences } from "../page/preferences.svelte";
import { texts, type LessonWords } from "./words";

export const PAPER = "The animal didn't cross the street because it was too tired.";
export const STEPS = 10;

/** A part of the model that a step lights on the stage. */
export type Lit = "pieces" | "positions" | "encoder" | "feed-forward" | "norm" | "decoder" | "cross" | "output" | "all";

/** How much ink lies behind the tokens of both sentences, from 0 to 1, and which tokens are framed. */
export interface Ink {
  source?: readonly number[];
  target?: readonly number[];
  focus?: { source?: number; target?: number };
  /** The layer and the head that are lit. */
  at?: { layer: number; head: number | null };
}

/** Lessons that stand in the file that is read; null on a page that a server gives. */
export function embedded(): Lesson[] | null {
  const inside = document.getElementById("lessons")?.textContent;
  return inside ? (JSON.parse(inside) as Lesson[]) : null;
}

export class LessonState {
  lesson = $state.raw<Lesson | null>(null);
  error = $state.raw<ApiError | null>(null);
  isWaiting = $state(false);
  step = $state(1);
  guesses = $state<Record<number, string>>({});
  inks = $state.raw<Record<number, Ink>>({});
  /** A step that a link names, as long as it is not shown. */
  wanted = $state(0);
  readonly file = embedded();
  /** The teacher's sheet: all answers, and nothing to try. */
  readonly isSheet = document.body.dataset.sheet !== undefined;
  #asked = "";
  #kept = new Map<string, Lesson>();

  constructor() {
    for (const one of this.file ?? []) this.#kept.set(one.sentence.text, one);
    this.lesson = this.file?.[0] ?? null;
    if (this.isSheet) this.#tellAll();
  }

  /** Show the lesson of a run about a sentence. */
  async open(run: string, text: string): Promise<void> {
    const key = this.file ? text : `${run} ${text}`;
    if (key === this.#asked) return;
    this.#asked = key;
    this.error = null;
    const known = this.#kept.get(key);
    if (known || this.file) return this.#show(known ?? this.lesson);
    this.isWaiting = true;
    try {
      const found: Lesson = await (await call("v1/lesson", post({ run, text }))).json();
      this.#kept.set(key, found);
      if (key === this.#asked) this.#show(found);
    } catch (error) {
      if (key !== this.#asked) return;
      this.#show(null);
      this.error = ApiError.of(error);
      this.#asked = "";
    }
    this.isWaiting = false;
  }

  #tellAll(): void {
    for (let step = 1; step <= STEPS; step++) this.guesses[step] = "";
  }

  #show(lesson: Lesson | null): void {
    if (lesson?.model.name !== this.lesson?.model.name) this.guesses = {};
    this.lesson = lesson;
    this.isWaiting = false;
  }

  ink(step: number, ink: Ink): void {
    this.inks = { ...untrack(() => this.inks), [step]: ink };
  }

  /** Show what an address holds. */
  follow({ more }: Place): void {
    const step = Number(more.step);
    this.wanted = step >= 1 && step <= STEPS ? step : 0;
  }

  /** In the language of the page. */
  get words(): LessonWords {
    return texts[preferences.language];
  }

  get more(): Record<string, string> {
    return this.step > 1 ? { step: String(this.step) } : {};
  }
}

/** Tokens as they are shown: the first piece of a word bare, what continues it after dots. */
export function labels(tokens: readonly string[]): string[] {
  return tokens.map(pieceLabel);
}

/** The words of a sentence, with the end symbol. */
export function wordsOf(tokens: readonly string[], words: readonly number[]): string[] {
  const out: string[] = [];
  tokens.forEach((token, i) => {
    const word = words[i] ?? 0;
    out[word] = (out[word] ?? "") + token.replaceAll("\u2581", "");
  });
  return out;
}

/** The sentence that a text begins with. */
export function firstSentence(text: string): string {
  const [first] = new Intl.Segmenter(undefined, { granularity: "sentence" }).segment(text.trim());
  return first?.segment.trim() ?? "";
}

export const sourceWords = (one: LessonSentence): string[] => wordsOf(one.tokens, one.words);

/** The word of the translation that the lesson is about, without the punctuation behind it. */
export function placeWord(one: LessonSentence): string {
  const word = wordsOf(one.output_tokens, one.output_words)[one.output_words[one.place] ?? 0] ?? "";
  return bare(word);
}

export const bare = (word: string): string => word.replace(/(?<=.)[.,;:!?]+$/u, "");

/** The word of another translation of a sentence at the place that the lesson is about; "" if there is none. */
export function wordThere(one: LessonSentence, output: string): string {
  return bare(output.split(/\s+/)[one.output_words[one.place] ?? 0] ?? "");
}

/** One of the sizes of a run. */
export const size = (model: LessonModel, name: string): number => Number(model.sizes[name] ?? 0);

export const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);

export function greatest(values: readonly number[]): number {
  return values.reduce((best, value, i) => (value > (values[best] ?? -Infinity) ? i : best), 0);
}

export function softmax(scores: readonly number[]): number[] {
  const most = Math.max(...scores);
  const grown = scores.map((one) => Math.exp(one - most));
  const all = sum(grown);
  return grown.map((one) => one / all);
}
