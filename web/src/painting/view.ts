import { AskText } from "../page/ask.svelte";
import { view } from "../page/view";
import { paintText, type Painted } from "./paint";
import { texts } from "./words";

export const paint = view({
  name: "paint",
  task: { name: "painting", verb: "paint", korean: "이미지 그리기" },
  works: { pictures: "이미지 그리기", "large pictures": "큰 이미지 그리기" },
  texts,
  load: () => import("./Paint.svelte"),
  asked: new AskText<Painted>("paint", paintText, ({ seed = "" }): Record<string, string> => (/^\d{1,9}$/.test(seed) ? { seed: String(Number(seed)) } : {})),
});
