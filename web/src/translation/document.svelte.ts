// A document that is translated: how far it is, and where its translation waits.

import { translateDocument } from "./translate";
import { ApiError } from "../page/api";

export class DocumentState {
  name = $state("");
  status = $state<"none" | "working" | "done" | "error">("none");
  done = $state(0);
  of = $state(0);
  /** Where the translation waits, as the page asks for it. */
  address = $state("");
  /** What is doubtful about it, in English. */
  warnings = $state.raw<string[]>([]);
  error = $state.raw<ApiError | null>(null);

  #request: AbortController | null = null;
  #again: () => void = () => {};

  async translate(file: File, source: string, target: string): Promise<void> {
    this.cancel();
    const request = new AbortController();
    this.#request = request;
    this.#again = () => void this.translate(file, source, target);
    Object.assign(this, { name: file.name, status: "working", done: 0, of: 0, address: "", warnings: [], error: null });
    try {
      for await (const event of translateDocument(file, source, target, request.signal)) {
        if (this.#request !== request) return;
        if (event.name === "error") throw ApiError.told(200, event.data);
        if (event.name === "progress") Object.assign(this, event.data);
        if (event.name === "done") {
          const { translatedFileUrl } = event.data;
          // From the page, wherever a proxy has put it.
          this.address = translatedFileUrl.slice(translatedFileUrl.indexOf("download_file/"));
          this.warnings = event.data.warnings ?? [];
          this.status = "done";
        }
      }
    } catch (error) {
      if (this.#request !== request || request.signal.aborted) return;
      this.error = ApiError.of(error);
      this.status = "error";
    }
  }

  again(): void {
    this.#again();
  }

  /** Stop the translation, or forget the one that is there. */
  cancel(): void {
    this.#request?.abort();
    this.#request = null;
    this.status = "none";
  }
}
