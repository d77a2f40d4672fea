// The views that are for runs of one task: what is shown, and who asks the server. A task is one line.

import type { Component } from "svelte";
import type { Given, Place, TaskView } from "./lib/address";
import type { ApiError, RunInfo, ServerInfo } from "./lib/api";
import { Asked } from "./lib/asked.svelte";
import { classify, labelFile } from "./lib/classify";
import { detect } from "./lib/detect";
import { FillerState } from "./lib/filler.svelte";
import { FileState } from "./lib/label.svelte";
import { readLine } from "./lib/lines";
import { PainterState } from "./lib/painter.svelte";
import { parse } from "./lib/parse";
import { tag } from "./lib/tag";
import { TranscriberState } from "./lib/transcriber.svelte";
import { TranslatorState } from "./lib/translator.svelte";
import { WriterState } from "./lib/writer.svelte";
import Classify from "./classify/Classify.svelte";
import Detect from "./detect/Detect.svelte";
import Fill from "./fill/Fill.svelte";
import Label from "./label/Label.svelte";
import Lines from "./lines/Lines.svelte";
import Paint from "./paint/Paint.svelte";
import Parse from "./parse/Parse.svelte";
import Tag from "./tag/Tag.svelte";
import Transcribe from "./transcribe/Transcribe.svelte";
import Translate from "./translate/Translate.svelte";
import Write from "./write/Write.svelte";

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
