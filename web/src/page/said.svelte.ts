// What is said for a moment of what a person did, and copying, of which it is said.

import { fits, put, type Given } from "./address";
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

/** Copy a text, also where the page is served without TLS to another machine: browsers give
    navigator.clipboard to secure pages alone -> whether it is in the clipboard now. */
async function copy(text: string): Promise<boolean> {
  if (navigator.clipboard) {
    return navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    );
  }
  const field = document.createElement("textarea");
  const focused = document.activeElement;
  field.value = text;
  field.readOnly = true;
  field.style.position = "fixed";
  field.style.opacity = "0";
  document.body.append(field);
  field.select();
  // The only way there, and every browser still has it.
  const done = document.execCommand("copy");
  field.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return done;
}
