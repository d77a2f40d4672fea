// Which figure is open, what its sliders and its sentence say, and what the server drew of it.

import type { FigureAnswer, FigureEntry, FigureRequest } from "$openapi";
import { least } from "d3-array";
import type { Given, Place } from "../page/address";
import { ApiError, call, post } from "../page/api";
import { Ask } from "../page/ask.svelte";
import { save } from "../page/save";
import type { Panel } from "./figures";

/** OpenAPI says of panels only that they are objects. */
interface Figure extends Omit<FigureAnswer, "panels"> {
  panels: Panel[];
}

export class FiguresState extends Ask {
  /** Empty: the first that is shown to everybody. */
  name = $state("");
  values = $state.raw<Record<string, number>>({});
  /** All figures, as far as the run is known. */
  entries = $state.raw<FigureEntry[]>([]);
  /** The last that was drawn. */
  figure = $state.raw<Figure | null>(null);

  /** The ways to tell positions, from the simplest to that of the paper: what is shown first. */
  readonly encodings = $derived(this.entries.filter(({ encoding }) => encoding));
  /** The one that is open, and what was drawn of it. */
  readonly entry = $derived(this.entries.find(({ name }) => name === this.name) ?? this.encodings.at(-1));
  readonly shown = $derived(this.figure?.name === this.entry?.name ? this.figure : null);
  /** `text`: empty for the run's own sentence. */
  readonly asked: FigureRequest = $derived({
    name: this.entry?.name ?? "",
    run: this.run?.name ?? "",
    sentence: this.text,
    values: this.values,
  });

  constructor() {
    super("figures");
  }

  override setText(text: string): void {
    this.text = text;
    this.again();
  }

  open(name: string, values: Record<string, number> = {}): void {
    this.name = name;
    this.values = values;
    this.again();
  }

  slide(slider: string, value: number): void {
    const all = Object.fromEntries((this.shown?.sliders ?? []).map((other) => [other.name, other.value]));
    this.values = { ...all, ...this.values, [slider]: value };
    this.again();
  }

  /** Another encoding with the same sizes, as near as it can have them. */
  encode({ name, values: allowed }: FigureEntry): void {
    const kept = (this.shown?.sliders ?? []).flatMap((slider): [string, number][] => {
      const nearest = least(allowed[slider.name] ?? [], (value) => Math.abs(value - slider.value));
      return nearest === undefined ? [] : [[slider.name, nearest]];
    });
    this.open(name, Object.fromEntries(kept));
  }

  protected override forget(): void {
    this.entries = [];
    this.figure = null;
  }

  again(): void {
    const run = this.run?.name;
    if (run === undefined) return;
    this.status = "waiting";
    void this.go(async (signal) => {
      if (!this.entries.length) {
        const listed = await call(`v1/figures?run=${encodeURIComponent(run)}`, { signal });
        this.entries = (await listed.json()).figures;
      }
      this.figure = this.entry?.missing ? null : await (await call("v1/figures", post(this.asked, signal))).json();
      this.status = "done";
    });
  }

  protected override failed(error: ApiError): void {
    this.figure = null;
    super.failed(error);
  }

  /** The picture, or its numbers, as files. */
  async download(ending: ".svg" | ".csv"): Promise<void> {
    try {
      const answer = await call("v1/figures", post({ ...this.asked, data: true }));
      const { files }: { files: Record<string, string> } = await answer.json();
      for (const [file, content] of Object.entries(files)) if (file.endsWith(ending)) save(file, content);
    } catch (error) {
      this.error = ApiError.of(error);
    }
  }

  /** Show what an address holds. */
  override follow({ figure, text, more }: Place): void {
    this.text = text;
    const values = Object.entries(more).map(([name, value]) => [name, Number(value)] as const);
    this.open(figure, Object.fromEntries(values.filter(([, value]) => Number.isFinite(value))));
  }

  override get place(): Given {
    const more = Object.fromEntries(Object.entries(this.values).map(([name, value]) => [name, String(value)]));
    return { ...super.place, figure: this.name, more };
  }
}
