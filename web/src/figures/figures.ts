// The panels of figures, as the server computes them.

import type { ChartData } from "../run/curves";

export interface PackedFloats {
  shape: number[];
  data: string;
}

export interface CellsPanel {
  kind: "cells";
  title: string;
  values: PackedFloats;
  rows: string[];
  columns: string[];
  down: string;
  across: string;
  cell: [number, number];
  reach: number;
  /** Deepest at 0. */
  is_least_deep: boolean;
  absent: string;
}

export interface HeadsPanel {
  kind: "heads";
  title: string;
  values: PackedFloats;
}

export interface HopsPanel {
  kind: "hops";
  source: string[];
  target: string[];
  word: number;
  through: number;
  first: number[];
  second: number[];
  first_from: string;
  second_from: string;
}

export interface TablePanel {
  kind: "table";
  title: string;
  header: string[];
  rows: string[][];
}

export interface LinesPanel {
  kind: "lines";
  chart: ChartData;
}

export type Panel = CellsPanel | HeadsPanel | HopsPanel | TablePanel | LinesPanel;
