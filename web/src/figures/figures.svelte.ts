// Which figure is open, and what its sliders and its sentence say.

import type { Place } from "../page/address";

export class FiguresState {
  /** Empty: the first that is shown to everybody. */
  name = $state("");
  values = $state.raw<Record<string, number>>({});
  /** Empty: the run's own. */
  sentence = $state("");

  open(name: string, values: Record<string, number>): void {
    this.name = name;
    this.values = values;
  }

  /** Show what an address holds. */
  follow({ figure, text, more }: Place): void {
    this.sentence = text;
    const values = Object.entries(more).map(([name, value]) => [name, Number(value)] as const);
    this.open(figure, Object.fromEntries(values.filter(([, value]) => Number.isFinite(value))));
  }

  /** What an address has to hold. */
  readonly place = $derived({
    view: "figures" as const,
    figure: this.name,
    text: this.sentence,
    more: Object.fromEntries(Object.entries(this.values).map(([name, value]) => [name, String(value)])),
  });
}
