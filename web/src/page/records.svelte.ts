// What is recorded of runs, for lists of them: scores and sizes, fetched when a list is seen.

import type { RunView } from "$openapi";
import { runView } from "./api";
import { preferences } from "./preferences.svelte";

class Records {
  #known = $state.raw<Record<string, RunView | null>>({});

  of(name: string): RunView | null {
    return this.#known[name] ?? null;
  }

  /** Fetch those that are not known; one that fails stays unknown. */
  load(names: string[]): void {
    for (const name of names) {
      if (name in this.#known) continue;
      this.#known = { ...this.#known, [name]: null };
      void runView(name)
        .then((found) => this.keep(found))
        .catch(() => {});
    }
  }

  keep(found: RunView): void {
    this.#known = { ...this.#known, [found.name]: found };
  }

  /** Its first score with what it is called; empty where it was not measured. */
  score(name: string): string {
    const score = this.of(name)?.scores[0];
    if (!score) return "";
    return `${preferences.named(score.called)} ${preferences.number(score.value * score.times, score.digits)}${preferences.unit(score.unit)}`;
  }

  /** A fact about it, as the server writes it; empty where that is not known. */
  fact(name: string, wanted: string): string {
    return this.of(name)?.facts.find(([fact]) => fact === wanted)?.[1] ?? "";
  }

  /** How many parameters it has, in short. */
  size(name: string): string {
    const size = Number(this.fact(name, "parameters").replace(/\D/g, ""));
    return size ? preferences.compact(size) : "";
  }
}

export const records = new Records();
