import { readTexts } from "../look/words_read";
import { view } from "../page/view";
import Paint from "./Paint.svelte";
import { AskPictures } from "./ask_pictures.svelte";
import { texts } from "./words";

export const paint = view({
  name: "paint",
  task: { name: "painting", verb: "paint", korean: "그림 그리기" },
  works: { pictures: "그림 그리기", "large pictures": "큰 그림 그리기" },
  texts,
  look: { texts: readTexts },
  Shown: Paint,
  asked: new AskPictures(),
});
