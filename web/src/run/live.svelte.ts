// A training that is watched: what its server tells in events, and what a visitor asks of it.

import type { ScoreView } from "$openapi";
import { ApiError, call, post, toldBy } from "../page/api";
import type { ChartData } from "./curves";

export interface Course {
  name: string;
  state: "preparing" | "training" | "stopping" | "stopped" | "finished" | "ended";
  can_stop: boolean;
  problem?: string;
  /** What follows is there as soon as the run is. */
  update: number;
  updates?: number;
  /** Seconds. */
  left: number | null;
  rate: number | null;
  speed: number | null;
  counted: string;
  languages: string[];
  translates: boolean;
  charts: ChartData[];
  scores: (Pick<ScoreView, "called" | "times" | "digits" | "unit"> & { value: number | null })[];
  samples: { source: string; reference: string; translation: string }[];
}

export interface Sentence {
  text: string;
  said: { update: number; text: string }[];
  problem: string;
  /** One head, of `layer` and `head`, at the moments of the film. */
  heads: {
    source: string[]; target: string[]; layers: number; heads: number; layer: number; head: number;
    /** An update, and a row of weights for each token of the translation. */
    maps: [number, number[][]][];
  } | null;
}

type Told = { name: "training"; data: Course } | { name: "sentence"; data: Sentence } | { name: "done" };

const AGAIN = 2000; // milliseconds until a server that is not there yet is asked again

export class Live {
  course = $state.raw<Course | null>(null);
  sentence = $state.raw<Sentence | null>(null);
  failure = $state.raw<ApiError | null>(null);

  /** Listen until the program ends, or the signal is given. */
  async listen(signal: AbortSignal): Promise<void> {
    this.failure = null;
    while (!this.course && !this.failure && !signal.aborted) {
      try {
        for await (const told of toldBy<Told>(await call("v1/training", { signal }), signal)) {
          if (told.name === "training") this.course = told.data;
          else if (told.name === "sentence") this.sentence = told.data;
        }
      } catch (error) {
        if (signal.aborted) return;
        if (ApiError.of(error).status) this.failure = ApiError.of(error);
      }
      await new Promise((done) => setTimeout(done, AGAIN));
    }
    if (this.course) this.course = { ...this.course, state: "ended" };
  }

  async ask(wish: { do?: "stop" | "resume"; text?: string; head?: [number, number] }): Promise<void> {
    this.failure = null;
    await call("v1/training", post(wish)).catch((error: unknown) => (this.failure = ApiError.of(error)));
  }
}
