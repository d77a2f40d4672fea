// Numbers as the server packs them: 16-bit floats, 32-bit floats or bytes, in base64.

let halves: Float32Array | null = null;

/** What each of the 65,536 half-precision numbers is. */
function table(): Float32Array {
  if (halves) return halves;
  halves = new Float32Array(65_536);
  for (let bits = 0; bits < 65_536; bits++) {
    const exponent = (bits >> 10) & 31;
    const fraction = bits & 1023;
    let value: number;
    if (exponent === 31) value = fraction ? NaN : Infinity;
    else if (exponent) value = 2 ** (exponent - 15) * (1 + fraction / 1024);
    else value = 2 ** -14 * (fraction / 1024);
    halves[bits] = bits & 0x8000 ? -value : value;
  }
  return halves;
}

export function bytes(base64: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64);
  const out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) out[i] = text.charCodeAt(i);
  return out;
}

export function fromHalves(base64: string): Float32Array {
  const known = table();
  const raw = new Uint16Array(bytes(base64).buffer);
  const out = new Float32Array(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = known[raw[i] as number] as number;
  return out;
}

export function fromFloats(base64: string): Float32Array {
  return new Float32Array(bytes(base64).buffer);
}

/** A matrix, row after row. */
export interface Grid {
  rows: number;
  columns: number;
  values: Float32Array;
}

export function rowOf(grid: Grid, row: number): Float32Array {
  return grid.values.subarray(row * grid.columns, (row + 1) * grid.columns);
}

/** The greatest of some numbers; 0 where there are none. */
export function greatest(values: Float32Array): number {
  return values.reduce((most, value) => Math.max(most, value), 0);
}

/**
 * Weights between pieces as weights between words: a word is looked at by as much as its pieces
 * together, and looks as its pieces do on average, so rows that sum to one still do.
 */
export function joined(grid: Grid, rowWord: number[], columnWord: number[]): Grid {
  const rows = (rowWord.at(-1) ?? -1) + 1;
  const columns = (columnWord.at(-1) ?? -1) + 1;
  const values = new Float32Array(rows * columns);
  const counts = new Uint16Array(rows);
  for (const word of rowWord) counts[word] = (counts[word] ?? 0) + 1;
  for (let r = 0; r < grid.rows; r++) {
    const word = rowWord[r] ?? 0;
    const share = 1 / (counts[word] ?? 1);
    const at = word * columns;
    for (let c = 0; c < grid.columns; c++) {
      const place = at + (columnWord[c] ?? 0);
      values[place] = (values[place] as number) + (grid.values[r * grid.columns + c] as number) * share;
    }
  }
  return { rows, columns, values };
}
