// The figures of the book, as the server computes them.

import type { FigureAnswer, FigureEntry, FigureRequest } from "$openapi";
import type { ChartData } from "../run/curves";
import { call, post } from "../page/api";
import { fromFloats } from "../drawing/numbers";

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

/** OpenAPI says of panels only that they are objects. */
export interface Figure extends Omit<FigureAnswer, "panels"> {
  panels: Panel[];
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
