// What is asked beside a file, and the parts of it that are hidden from the model: of pictures and of recordings alike.

export abstract class AskedBeside {
  /** What is asked beside the file, by the names of the API's fields. */
  also = $state.raw<Record<string, string>>({});

  /** Ask about the same file again. */
  abstract again(): void;

  /** Ask about the same file again, and for this too; "" leaves it out. */
  askAlso(field: string, value: string): void {
    this.#set(field, value);
    this.again();
  }

  /** Other files and runs have other cells: for them none is hidden. */
  protected showAll(): void {
    this.leaveOut("hidden");
    this.leaveOut("at");
  }

  /** From now on; what is seen stays until something is asked. */
  leaveOut(field: string): void {
    this.#set(field, "");
  }

  #set(field: string, value: string): void {
    const { [field]: _, ...others } = this.also;
    this.also = value ? { ...others, [field]: value } : others;
  }
}

/** The cells of a file that a click hides from the model. */
export class Hiding {
  /** Whether cells can be clicked. */
  isOn = $state(false);

  constructor(private readonly asked: () => AskedBeside) {}

  readonly cells: ReadonlySet<number> = $derived.by(() => {
    const told = this.asked().also["hidden"];
    return new Set(told ? told.split(",").map(Number) : []);
  });

  hide(cell: number): void {
    const cells = new Set(this.cells);
    if (!cells.delete(cell)) cells.add(cell);
    this.asked().askAlso("hidden", [...cells].join(","));
  }

  showAll(): void {
    if (this.cells.size) this.asked().askAlso("hidden", "");
  }

  /** What is done when it was switched on or off. */
  switched(): void {
    if (!this.isOn) this.showAll();
  }
}
