// The run that is chosen: one for all views.

import type { RunInfo } from "$openapi";

class Chosen {
  run = $state.raw<RunInfo | null>(null);
}

export const chosen = new Chosen();

/** The language into which a request asks a run that knows several. */
export function into(run: RunInfo): { target?: string } {
  return run.targets.length > 1 ? { target: run.target } : {};
}
