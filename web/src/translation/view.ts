import { both } from "../page/texts";
import { view } from "../page/view";
import { AskTranslation } from "./ask_translation.svelte";

export const translate = view({
  name: "translate",
  task: { name: "translation", verb: "translate", korean: "번역" },
  texts: both({
    tab: ["Translate", "번역"],
    about: ["Translates your text as you type. Click a word to see what else could stand there.",
      "학습된 모델이 입력하는 대로 번역합니다. 단어를 누르면 그 자리에 올 수 있는 다른 말을 볼 수 있습니다."],
  }),
  learned: {
    en: (pairs, words) => `It has learned from ${pairs} pairs of sentences${words === null ? "" : ` with ${words} different words`}.`,
    ko: (pairs, words) => `문장 쌍 ${pairs}개로 학습했${words === null ? "습니다" : `고, 그 안의 서로 다른 단어는 ${words}개입니다`}.`,
  },
  look: { isSearching: true, takesPrefix: true },
  load: () => import("./Translate.svelte"),
  asked: new AskTranslation("translate"),
});
