// The figures of the book, as the server computes them.

import { call, post, type ChartData } from "../page/api";
import { fromFloats } from "../drawing/numbers";
import type { UiLanguage } from "../page/words";

export type Both = Record<UiLanguage, string>;

export interface FigureEntry {
  name: string;
  title: Both;
  caption: Both;
  source: Both;
  /** What it is about. */
  group: "positions" | "attention" | "training" | "run";
  /** What the encoding of positions that it shows is called beside the others. */
  encoding?: Both;
  needs_run: boolean;
  /** Which sentence is shown where none is given, if one may be. */
  sentence?: "first" | "chosen";
  /** What its sliders may be, by name. */
  values: Record<string, number[]>;
  missing?: Both;
  /** What makes it elsewhere. */
  command?: string;
}

export interface Slider {
  name: string;
  title: Both;
  values: number[];
  value: number;
  zero?: Both;
}

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

export interface Figure {
  name: string;
  title: Both;
  caption: Both;
  notes: Both[];
  source: Both;
  run: string;
  sentence: string;
  sliders: Slider[];
  panels: Panel[];
}

export interface FigureRequest {
  name: string;
  run: string;
  sentence: string;
  values: Record<string, number>;
}

export async function figureList(run: string): Promise<FigureEntry[]> {
  return (await (await call(`v1/figures?run=${encodeURIComponent(run)}`)).json()).figures;
}

export async function figure(request: FigureRequest, signal: AbortSignal): Promise<Figure> {
  return (await call("v1/figures", post(request, signal))).json();
}

export async function figureData(request: FigureRequest): Promise<Record<string, string>> {
  return (await (await call("v1/figures", post({ ...request, data: true }))).json()).files;
}

export function unpacked(packed: PackedFloats): Float32Array {
  return fromFloats(packed.data);
}
