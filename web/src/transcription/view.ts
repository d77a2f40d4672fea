import { view } from "../page/view";
import { AskRecording } from "./ask_recording.svelte";
import { texts } from "./words";

export const transcribe = view({
  name: "transcribe",
  task: { name: "transcription", verb: "transcribe", korean: "받아쓰기" },
  texts,
  load: () => import("./Transcribe.svelte"),
  asked: new AskRecording(),
});
