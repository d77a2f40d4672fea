import { AskFile } from "../files/ask_file.svelte";
import { both } from "../page/texts";
import { view } from "../page/view";
import { AskTranslation } from "./ask_translation.svelte";
import { readLine } from "./lines";

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

export const lines = view({
  name: "lines",
  task: { name: "picture-translation", verb: "translate", korean: "이미지 속 글 읽기" },
  works: { lines: "이미지 속 글 읽기" },
  texts: both({
    tab: ["Text in a picture", "이미지 속 글"],
    about: ["Reads a line of text in a picture, and writes it or its translation: choose a file, or use the camera.",
      "학습된 모델이 이미지 속의 글 한 줄을 읽고 그 내용이나 번역을 씁니다. 파일을 넣거나 카메라를 쓰세요."],
  }),
  load: () => import("./Lines.svelte"),
  asked: new AskFile("lines", readLine),
});
