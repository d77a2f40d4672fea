// How the curves of a run are looked at.

import type { Place } from "../page/address";

export class RunLook {
  /** How much of the mean before is kept from point to point; 0: curves as measured. */
  beta = $state(0);
  /** As losses are read best. */
  isLog = $state(true);
  /** Other runs, whose curves stand over the same axes. */
  others = $state.raw<string[]>([]);

  /** Show what an address holds. */
  follow({ more }: Place): void {
    const beta = Number(more.smooth ?? 0);
    this.beta = beta > 0 && beta < 1 ? beta : 0;
    this.isLog = more.log !== "0";
    this.others = (more.other ?? "").split(",").filter(Boolean);
  }

  /** What an address has to hold. */
  readonly more = $derived({
    smooth: this.beta ? String(this.beta) : "",
    log: this.isLog ? "" : "0",
    other: this.others.join(","),
  });
}
