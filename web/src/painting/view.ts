import { readTexts } from "../look/words_read";
import { view } from "../page/view";
import Paint from "./Paint.svelte";
import { AskPictures } from "./ask_pictures.svelte";
import { texts } from "./words";

export const paint = view({
  name: "paint",
  task: { name: "painting", verb: "paint", korean: "이미지 그리기" },
  works: { pictures: "이미지 그리기", "large pictures": "큰 이미지 그리기" },
  texts,
  look: { texts: readTexts },
  Shown: Paint,
  asked: new AskPictures(),
});
