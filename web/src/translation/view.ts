import { view } from "../page/view";
import Translate from "./Translate.svelte";
import { TranslatorState } from "./translator.svelte";
import { texts } from "./words";

export const translate = view({
  name: "translate",
  takes: ({ task }) => task === "translation",
  texts,
  Shown: Translate,
  asked: new TranslatorState(),
});
