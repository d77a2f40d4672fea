import { view } from "../page/view";
import Translate from "./Translate.svelte";
import { AskTranslation } from "./ask_translation.svelte";
import { texts } from "./words";

export const translate = view({
  name: "translate",
  takes: ({ task }) => task === "translation",
  texts,
  Shown: Translate,
  asked: new AskTranslation("translate"),
});
