// A view that is for runs of one task. Its folder has all that is its own; views.ts names it.

import type { RunInfo, ServerInfo } from "$openapi";
import type { Component } from "svelte";
import type { Ask } from "./ask.svelte";
import type { Texts, Words } from "./words";

/** What a view is shown with. */
export interface ViewProps<Asked> {
  server: ServerInfo;
  asked: Asked;
  /** Looks into the text. */
  onlook: () => void;
}

interface Described<Asked> {
  /** Its name in addresses. */
  name: string;
  /** Whether it is for a run. */
  takes: (run: RunInfo) => boolean;
  /** Its tab, and what it is for. */
  texts: Texts<{ tab: string; about: string }>;
  /** What the tab Look calls otherwise for its runs. */
  lookTexts?: Texts<Partial<Words>>;
  Shown: Component<ViewProps<Asked>>;
  asked: Asked;
}

export type TaskView = Described<Ask<string>>;

/** Checks that a component shows what is asked beside it, and forgets what that is. */
export function view<Asked extends Ask<string>>(described: Described<Asked>): TaskView {
  return described as unknown as TaskView;
}
