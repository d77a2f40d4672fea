// A paper for what is drawn on canvas: the same strokes, as SVG.

import { shape } from "../drawing/pictures";

/** As much of a canvas as drawings that are saved too may use. */
export type Paper = Pick<
  CanvasRenderingContext2D,
  | "fillStyle" | "strokeStyle" | "lineWidth" | "lineCap"
  | "beginPath" | "moveTo" | "bezierCurveTo" | "rect" | "roundRect" | "clip" | "fill" | "stroke" | "save" | "restore"
>;

export class SvgPaper implements Paper {
  fillStyle = "";
  strokeStyle = "";
  lineWidth = 1;
  lineCap: CanvasLineCap = "butt";
  readonly marks: SVGElement[] = [];
  #path = "";

  beginPath(): void {
    this.#path = "";
  }

  moveTo(x: number, y: number): void {
    this.#path += `M${placed(x)} ${placed(y)}`;
  }

  bezierCurveTo(...numbers: [number, number, number, number, number, number]): void {
    this.#path += `C${numbers.map(placed).join(" ")}`;
  }

  rect(x: number, y: number, width: number, height: number): void {
    this.#path += `M${placed(x)} ${placed(y)}h${placed(width)}v${placed(height)}h${placed(-width)}z`;
  }

  /** Its corners are square here: four pixels more or less. */
  roundRect(x: number, y: number, width: number, height: number): void {
    this.rect(x, y, width, height);
  }

  fill(): void {
    this.marks.push(shape("path", { d: this.#path, fill: String(this.fillStyle) }));
  }

  stroke(): void {
    const style = { stroke: String(this.strokeStyle), "stroke-width": this.lineWidth, "stroke-linecap": this.lineCap };
    this.marks.push(shape("path", { d: this.#path, fill: "none", ...style }));
  }

  // A file shows what is drawn, whole: nothing is clipped, and so nothing need be restored.
  clip(): void {}
  save(): void {}
  restore(): void {}
}

function placed(value: number): number {
  return Number(value.toFixed(1));
}
