// The views that are for runs of one task: what is shown, and who asks the server. A task is one line.

import type { Component } from "svelte";
import type { Given, Place, TaskView } from "./page/address";
import type { ApiError, RunInfo, ServerInfo } from "./page/api";
import { Asked } from "./page/asked.svelte";
import { classify, labelFile } from "./classification/classify";
import { detect } from "./detection/detect";
import { FillerState } from "./masked/filler.svelte";
import { FileState } from "./files/file_state.svelte";
import { readLine } from "./translation/lines";
import { PainterState } from "./painting/painter.svelte";
import { parse } from "./parsing/parse";
import { tag } from "./tagging/tag";
import { TranscriberState } from "./transcription/transcriber.svelte";
import { TranslatorState } from "./translation/translator.svelte";
import { WriterState } from "./language_model/writer.svelte";
import Classify from "./classification/Classify.svelte";
import Detect from "./detection/Detect.svelte";
import Fill from "./masked/Fill.svelte";
import Label from "./classification/Label.svelte";
import Lines from "./translation/Lines.svelte";
import Paint from "./painting/Paint.svelte";
import Parse from "./parsing/Parse.svelte";
import Tag from "./tagging/Tag.svelte";
import Transcribe from "./transcription/Transcribe.svelte";
import Translate from "./translation/Translate.svelte";
import Write from "./language_model/Write.svelte";

/** Who asks a run about a text. */
export interface Asking {
  readonly run: RunInfo | null;
  readonly text: string;
  readonly error: ApiError | null;
  /** A run that is chosen; one of another task is none for it. */
  setRun: (run: RunInfo) => void;
  again: () => void;
  /** Show what an address holds, and what it has to hold. */
  follow: (place: Place) => void;
  readonly place: Given;
}

interface Props<Own> {
  server: ServerInfo;
  translator: TranslatorState;
  asked: Own;
  /** Look into the text. */
  onlook: () => void;
}

export interface ViewOfTask {
  view: TaskView;
  Shown: Component<Props<Asking>>;
  asked: Asking;
}

/** A view, and who asks for it. */
function made<Own extends Asking>(view: TaskView, shown: Component<Props<Own>>, asked: Own): ViewOfTask {
  // What is shown is given the one that stands beside it.
  return { view, Shown: shown as unknown as Component<Props<Asking>>, asked };
}

export function viewsOfTasks(translator: TranslatorState): ViewOfTask[] {
  return [
    made("translate", Translate, translator),
    made("write", Write, new WriterState()),
    made("classify", Classify, new Asked("classification", classify)),
    made("fill", Fill, new FillerState()),
    made("parse", Parse, new Asked("parsing", parse)),
    made("tag", Tag, new Asked("tagging", tag)),
    made("label", Label, new FileState("label", labelFile)),
    made("boxes", Detect, new FileState("boxes", detect)),
    made("lines", Lines, new FileState("lines", readLine)),
    made("paint", Paint, new PainterState()),
    made("transcribe", Transcribe, new TranscriberState()),
  ];
}
