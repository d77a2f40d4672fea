// A view that is for runs of one task. Its folder has all that is its own; views.ts names it.

import type { RunInfo, ServerInfo } from "$openapi";
import type { Component } from "svelte";
import type { Given, Place } from "./address";
import type { ApiError } from "./api";
import type { Texts, Words } from "./words";

/** The state of a view: what it asks of a run, and about which text. */
export interface Asking {
  readonly run: RunInfo | null;
  readonly text: string;
  readonly error: ApiError | null;
  setRun: (run: RunInfo) => void;
  again: () => void;
  /** Shows what an address holds. */
  follow: (place: Place) => void;
  /** What an address has to hold. */
  readonly place: Given;
}

interface Props<State> {
  server: ServerInfo;
  asked: State;
  /** Looks into the text. */
  onlook: () => void;
}

interface Described<State> {
  /** Its name in addresses. */
  name: string;
  /** Whether it is for a run. */
  takes: (run: RunInfo) => boolean;
  /** Its tab, and what it is for. */
  texts: Texts<{ tab: string; about: string }>;
  /** What the tab Look calls otherwise for its runs. */
  lookTexts?: Texts<Partial<Words>>;
  Shown: Component<Props<State>>;
  asked: State;
}

export type TaskView = Described<Asking>;

/** Checks that a component shows the state beside it, and forgets which state that is. */
export function view<State extends Asking>(described: Described<State>): TaskView {
  return described as unknown as TaskView;
}
