import { both } from "../page/texts";
import { view } from "../page/view";
import { AskBlanks } from "./ask_blanks.svelte";

export const fill = view({
  name: "fill",
  task: { name: "masked", verb: "fill", korean: "빈칸 채우기" },
  texts: both({
    tab: ["Fill in", "빈칸 채우기"],
    about: ["Fills the blanks (___) of your text with the most probable words.",
      "학습된 모델이 글의 빈칸(___)에 가장 확률이 높은 단어를 채웁니다."],
  }),
  load: () => import("./Fill.svelte"),
  asked: new AskBlanks(),
});
