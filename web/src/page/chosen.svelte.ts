// The run that is chosen: one for all views.

import type { RunInfo } from "$openapi";


class Chosen {
  run = $state.raw<RunInfo | null>(null);
}

export const chosen = new Chosen();
