// What the page knows of a task. Its folder has all that is its own; views.ts names it.

import type { RunInfo, ServerInfo } from "$openapi";
import type { Component } from "svelte";
import { readTexts } from "../look/words_read";
import type { Given } from "./address";
import type { Ask } from "./ask.svelte";
import type { Texts, Words } from "./words";

/** What a task is shown with. */
export interface ViewProps<Asked> {
  server: ServerInfo;
  asked: Asked;
  /** Looks into the text. */
  onlook: () => void;
}

/** How runs of a task are looked into, where that is not as of those that read a file or a text and search nothing. */
interface LookOptions {
  /** What is called otherwise. */
  texts?: Texts<Partial<Words>>;
  /** The runs read no text: what they write is looked into. */
  isWriting?: boolean;
  /** They search for what they write. */
  isSearching?: boolean;
  /** The program can be told how what is written begins. */
  takesPrefix?: boolean;
}

interface Described<Asked> {
  /** What its task is called: by the server, as a verb, and in Korean. */
  task: { name: string; verb: string; korean: string };
  /** In Korean, other work of its runs. */
  works?: Record<string, string>;
  /** Its name in addresses. */
  name: string;
  /** Whether it is for a run of the task; without, for all. */
  only?: (run: RunInfo) => boolean;
  /** What it does, in a word and in a sentence. */
  texts: Texts<{ tab: string; about: string }>;
  /** What its runs have learned from, where that is not said as of others; `words`: how many different ones. */
  learned?: Texts<(count: string, words: string | null) => string>;
  look?: LookOptions;
  /** Steps of the lesson that its runs show again, over what they read, and where: in its own view, unless another is named. */
  again?: Partial<Record<3 | 8, Partial<Given>>>;
  /** Its component, fetched when a run of it is shown. */
  load: () => Promise<{ default: Component<ViewProps<Asked>> }>;
  asked: Asked;
}

export interface TaskView extends Described<Ask<string>> {
  /** Whether it is for a run. */
  takes: (run: RunInfo) => boolean;
}

/** Checks that a component shows what is asked beside it, and forgets what that is. */
export function view<Asked extends Ask<string>>(described: Described<Asked>): TaskView {
  const { task, only } = described as unknown as TaskView;
  return { look: { texts: readTexts }, ...(described as unknown as TaskView), takes: (run) => run.task === task.name && (!only || only(run)) };
}
