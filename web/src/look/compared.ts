// What is new in one list of words beside another: those without a partner in the longest list that
// both hold in this order.

const MOST = 1_000_000; // cells of the table

export function isNew(one: string[], other: string[]): boolean[] {
  if (one.length * other.length > MOST) return one.map(() => false);
  const width = other.length + 1;
  const table = new Uint16Array((one.length + 1) * width);
  const at = (i: number, j: number): number => table[i * width + j] ?? 0;
  for (let i = one.length - 1; i >= 0; i--) {
    for (let j = other.length - 1; j >= 0; j--) {
      table[i * width + j] = one[i] === other[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const out: boolean[] = [];
  let j = 0;
  for (let i = 0; i < one.length; ) {
    if (j < other.length && one[i] === other[j]) {
      out[i++] = false;
      j++;
    } else if (j < other.length && at(i + 1, j) < at(i, j + 1)) j++;
    else out[i++] = true;
  }
  return out;
}
