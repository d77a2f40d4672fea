// What is said for a moment of what a person did, and copying, of which it is said.

import { fits, put, type Given } from "./address";
import { copy } from "./clipboard";
import { preferences } from "./preferences.svelte";

export class Said {
  text = $state("");

  #timer: ReturnType<typeof setTimeout> | undefined;
  #moment: number;

  /** `moment`: how long it can be read, in ms. */
  constructor(moment = 2500) {
    this.#moment = moment;
  }

  /** Copy a text, and say that it is done, or that it cannot be. */
  async copied(text: string, done = preferences.words.copied): Promise<void> {
    this.text = (await copy(text)) ? done : preferences.words.not_copied;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => (this.text = ""), this.#moment);
  }

  /** Put a place into the address, and copy that. */
  async shared(place: Given): Promise<void> {
    put(place);
    const { shared, shared_without } = preferences.words;
    await this.copied(location.href, fits(place) ? shared : shared_without);
  }
}
