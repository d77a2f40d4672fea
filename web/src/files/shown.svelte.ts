// A file that was given, as the browser shows or plays it.

export class Shown {
  /** Where the browser finds it; empty while there is none. */
  address = $state("");

  constructor(file: () => Blob | null) {
    $effect(() => {
      const given = file();
      const address = given ? URL.createObjectURL(given) : "";
      this.address = address;
      return () => URL.revokeObjectURL(address);
    });
  }
}
