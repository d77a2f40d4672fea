// Curves made easier to read: smoothed, and two runs over one axis.

import type { ChartView, Line } from "$openapi";

/** A chart of a run, or of a figure: OpenAPI says of the panels of a figure only that they are objects. */
export interface ChartData extends ChartView {
  log_x?: boolean;
  from_zero?: boolean;
  /** Each point by itself: they are no course of anything. */
  points?: boolean;
}

export interface Curve extends Line {
  /** Which of the runs that are compared; each has a colour of its own. */
  run: number;
  /** As it was measured, where `y` is smoothed. */
  raw: number[] | null;
}

const FEW = 30; // points: nothing to smooth

/**
 * Mean of what went before, the nearest counting most: m ← β m + (1 − β) y, divided by 1 − βⁿ so
 * that the first points are not drawn towards zero. Points of unequal distance count by it.
 */
export function smoothed({ x, y }: Line, beta: number): number[] {
  const step = ((x.at(-1) ?? 0) - (x[0] ?? 0)) / Math.max(1, x.length - 1) || 1;
  let [mean, weight] = [0, 0];
  return y.map((value, i) => {
    const kept = beta ** (i ? ((x[i] ?? 0) - (x[i - 1] ?? 0)) / step : 1);
    mean = kept * mean + (1 - kept) * value;
    weight = kept * weight + (1 - kept);
    return mean / weight;
  });
}

export function curves(charts: ChartData[], beta: number): Curve[] {
  return charts.flatMap((chart, run) =>
    chart.series.map((series) => {
      const isNoisy = beta > 0 && series.x.length >= FEW;
      return { ...series, run, y: isNoisy ? smoothed(series, beta) : series.y, raw: isNoisy ? series.y : null };
    }),
  );
}

/** What tells lines of one colour apart: the first is whole, and no two others are alike. */
export function dashesOf(place: number): string {
  return ["", "6 3", "2 3", "9 3 2 3"][place] ?? `${4 * place} 3 2 3`;
}
