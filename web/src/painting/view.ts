import { readTexts } from "../look/words_read";
import { view } from "../page/view";
import Paint from "./Paint.svelte";
import { AskPictures } from "./ask_pictures.svelte";
import { texts } from "./words";

export const paint = view({
  name: "paint",
  takes: ({ task }) => task === "painting",
  texts,
  lookTexts: readTexts,
  Shown: Paint,
  asked: new AskPictures(),
});
