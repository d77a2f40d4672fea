import { AskText } from "../page/ask.svelte";
import { both } from "../page/texts";
import { view } from "../page/view";
import { paintText, type Painted } from "./paint";

export const paint = view({
  name: "paint",
  task: { name: "painting", verb: "paint", korean: "이미지 그리기" },
  works: { pictures: "이미지 그리기", "large pictures": "큰 이미지 그리기" },
  texts: both({
    tab: ["Paint", "이미지 그리기"],
    about: ["Paints a picture of your caption. Point at a part of it to see which words the model looked at.",
      "학습된 모델이 설명에 맞는 이미지를 코드 하나씩 그립니다. 설명을 입력하고, 이미지의 한 부분에 커서를 올려 모델이 설명의 어느 단어를 보았는지 확인하세요."],
  }),
  again: { 8: {} },
  load: () => import("./Paint.svelte"),
  asked: new AskText<Painted>("paint", paintText, ({ seed = "" }): Record<string, string> => (/^\d{1,9}$/.test(seed) ? { seed: String(Number(seed)) } : {})),
});
