// A file that is dropped on a view, pasted or chosen: what hands it over, whatever the view does with it.

type Take = (files: FileList | null | undefined) => unknown;

export class GivenFile {
  /** Whether files are held over the view. */
  isOver = $state(false);

  /** `isShown`: whether the view is, since the whole window pastes. */
  constructor(
    private readonly take: Take,
    private readonly isShown: () => boolean = () => false,
  ) {}

  readonly holds = (event: DragEvent): void => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    this.isOver = true;
  };

  readonly leaves = (): void => {
    this.isOver = false;
  };

  readonly dropped = (event: DragEvent): void => {
    event.preventDefault();
    this.isOver = false;
    this.take(event.dataTransfer?.files);
  };

  readonly pasted = (event: ClipboardEvent): void => {
    if (this.isShown() && event.clipboardData?.files.length) this.take(event.clipboardData.files);
  };

  readonly chosen = (event: Event & { currentTarget: HTMLInputElement }): void => {
    this.take(event.currentTarget.files);
    event.currentTarget.value = ""; // the same file may be chosen again
  };
}

const LOADED = 30_000; // ms until no element that is gone loads its file any more

/** A file that was given, as the browser shows or plays it. */
export class Shown {
  /** Where the browser finds it; empty while there is none. */
  address = $state("");

  constructor(file: () => Blob | null) {
    $effect(() => {
      const given = file();
      const address = given ? URL.createObjectURL(given) : "";
      this.address = address;
      return () => void setTimeout(() => URL.revokeObjectURL(address), LOADED);
    });
  }
}
