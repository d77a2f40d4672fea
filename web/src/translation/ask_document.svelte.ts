// A document that is translated: how far it is, and where its translation waits.

import { send, toldBy } from "../page/api";
import { Ask } from "../page/ask.svelte";
import type { DocumentEvent } from "./translate";

export class AskDocument extends Ask {
  name = $state("");
  done = $state(0);
  of = $state(0);
  /** Where the translation waits, as the page asks for it. */
  address = $state("");
  /** What is doubtful about it, in English. */
  warnings = $state.raw<string[]>([]);

  #again: () => void = () => {};

  async translate(file: File, source: string, target: string): Promise<void> {
    this.#again = () => void this.translate(file, source, target);
    Object.assign(this, { name: file.name, status: "waiting", done: 0, of: 0, address: "", warnings: [] });
    await this.go(async (signal) => {
      const response = await send("translate_file", file, file.name, { source, target, stream: "true" }, signal);
      for await (const event of toldBy<DocumentEvent>(response, signal)) {
        if (event.name === "progress") Object.assign(this, event.data);
        if (event.name === "done") {
          const { translatedFileUrl } = event.data;
          // From the page, wherever a proxy has put it.
          this.address = translatedFileUrl.slice(translatedFileUrl.indexOf("download_file/"));
          this.warnings = event.data.warnings ?? [];
          this.status = "done";
        }
      }
    });
  }

  again(): void {
    this.#again();
  }

  /** Stop the translation, or forget the one that is there. */
  forgo(): void {
    this.cancel();
    this.status = "empty";
  }
}
