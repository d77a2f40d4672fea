// Strokes of a person, and the picture that they make at the size that a run reads.

export type Point = { x: number; y: number };
export type Stroke = Point[];

/** The width of a line, of a field of width 1; in MNIST a digit's is about an eighth of its height. */
const LINE = 0.075;
/** In MNIST a digit fills 20 of 28 pixels, and its centre of mass is in the middle. */
const BOX = 20 / 28;
const FINER = 8; // drawn so many times finer, then made small

function canvasOf(width: number, height: number): [HTMLCanvasElement, CanvasRenderingContext2D] {
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width, height });
  const paper = canvas.getContext("2d", { willReadFrequently: true });
  if (!paper) throw new Error("no canvas");
  return [canvas, paper];
}

/** Strokes as an SVG has them, in a field of width 1; what has no length is not drawn, so a dot has a little. */
export function pathOf(strokes: Stroke[]): string {
  return strokes.map((stroke) => `M${stroke.map(({ x, y }) => `${x} ${y}`).join("L")}l.0001 0`).join("");
}

/** White on black: how much of each pixel is ink. */
function drawn(strokes: Stroke[], width: number, height: number, isCentred: boolean): HTMLCanvasElement {
  const side = Math.min(width, height);
  const [fine, paper] = canvasOf(width * FINER, height * FINER);
  const all = strokes.flat();
  const [xs, ys] = [all.map(({ x }) => x), all.map(({ y }) => y)];
  const middle = { x: (Math.min(...xs) + Math.max(...xs)) / 2, y: (Math.min(...ys) + Math.max(...ys)) / 2 };
  const extent = Math.max(Math.max(...xs) - Math.min(...xs), Math.max(...ys) - Math.min(...ys)) + LINE;
  const scale = side * FINER * (isCentred ? BOX / Math.max(extent, 0.2) : 1);
  const about = isCentred ? middle : { x: 0.5, y: 0.5 };
  paper.fillRect(0, 0, fine.width, fine.height);
  paper.setTransform(scale, 0, 0, scale, fine.width / 2 - about.x * scale, fine.height / 2 - about.y * scale);
  // A line is as wide as in MNIST, however large a person draws.
  const lineWidth = isCentred ? (0.085 * side * FINER) / scale : LINE;
  Object.assign(paper, { strokeStyle: "#fff", lineCap: "round", lineJoin: "round", lineWidth });
  paper.stroke(new Path2D(pathOf(strokes)));
  return fine;
}

/** Where the ink of a picture has its centre of mass, from its middle, in pixels. */
function offCentre(canvas: HTMLCanvasElement): Point {
  const { width, height } = canvas;
  const { data } = canvas.getContext("2d")?.getImageData(0, 0, width, height) ?? { data: new Uint8ClampedArray() };
  let [mass, x, y] = [0, 0, 0];
  for (let i = 0; i < width * height; i++) {
    const dark = data[4 * i] ?? 0;
    mass += dark;
    x += dark * (i % width);
    y += dark * Math.floor(i / width);
  }
  return mass ? { x: x / mass - (width - 1) / 2, y: y / mass - (height - 1) / 2 } : { x: 0, y: 0 };
}

/** A PNG of the strokes; `isDark`: black on white. */
export async function pictureOf(strokes: Stroke[], width: number, height: number, isCentred: boolean, isDark: boolean): Promise<Blob> {
  const fine = drawn(strokes, width, height, isCentred);
  const [small, paper] = canvasOf(width, height);
  paper.fillRect(0, 0, width, height);
  paper.imageSmoothingQuality = "high";
  const off = isCentred ? offCentre(fine) : { x: 0, y: 0 };
  paper.drawImage(fine, -off.x / FINER, -off.y / FINER, width, height);
  if (isDark) {
    paper.globalCompositeOperation = "difference";
    paper.fillStyle = "#fff";
    paper.fillRect(0, 0, width, height);
  }
  return blobOf(small, "image/png");
}

/** A picture of a video as it is now, no larger than a model has use for. */
export async function frameOf(video: HTMLVideoElement): Promise<Blob> {
  const scale = Math.min(1, 512 / Math.max(video.videoWidth, video.videoHeight));
  const [canvas, paper] = canvasOf(Math.round(video.videoWidth * scale), Math.round(video.videoHeight * scale));
  paper.drawImage(video, 0, 0, canvas.width, canvas.height);
  return blobOf(canvas, "image/jpeg");
}

function blobOf(canvas: HTMLCanvasElement, type: string): Promise<Blob> {
  return new Promise((done, failed) => canvas.toBlob((blob) => (blob ? done(blob) : failed(new Error("no picture"))), type, 0.92));
}
