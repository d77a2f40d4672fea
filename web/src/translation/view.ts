import { view } from "../page/view";
import Translate from "./Translate.svelte";
import { AskTranslation } from "./ask_translation.svelte";
import { learned, texts } from "./words";

export const translate = view({
  name: "translate",
  task: { name: "translation", verb: "translate", korean: "번역" },
  texts,
  learned,
  look: { isSearching: true, takesPrefix: true },
  Shown: Translate,
  asked: new AskTranslation("translate"),
});
