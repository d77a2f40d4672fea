// Numbers as the server packs them: 16-bit floats, 32-bit floats or bytes, in base64.

export function bytes(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}

/** A half-precision number, of its bits. */
function half(bits: number): number {
  const [sign, exponent, fraction] = [bits & 0x8000 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
}

export function fromHalves(base64: string): Float32Array {
  return Float32Array.from(new Uint16Array(bytes(base64).buffer), half);
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
