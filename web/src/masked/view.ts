import { view } from "../page/view";
import { AskBlanks } from "./ask_blanks.svelte";
import { texts } from "./words";

export const fill = view({
  name: "fill",
  task: { name: "masked", verb: "fill", korean: "빈칸 채우기" },
  texts,
  load: () => import("./Fill.svelte"),
  asked: new AskBlanks(),
});
