import { view } from "../page/view";
import { AskTranslation } from "./ask_translation.svelte";
import { learned, texts } from "./words";

export const translate = view({
  name: "translate",
  task: { name: "translation", verb: "translate", korean: "번역" },
  texts,
  learned,
  look: { isSearching: true, takesPrefix: true },
  load: () => import("./Translate.svelte"),
  asked: new AskTranslation("translate"),
});
