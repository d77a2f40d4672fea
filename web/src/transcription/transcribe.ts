// Transcription: a recording in, what is said in it out, and the files that are made of it.

import type { TranscribedSegment, TranscribedWord } from "$openapi";
import { toldBy } from "../page/api";
import { sent, type Question } from "../files/ask_file.svelte";

/** A segment of a stream: it has its words, which OpenAPI tells of beside the segments of an answer. */
export interface Segment extends Pick<TranscribedSegment, "text" | "start" | "end" | "seen"> {
  words?: TranscribedWord[];
}

type Told =
  | { name: "transcript.text.delta"; data: { delta: string } }
  | { name: "transcript.text.segment"; data: Segment }
  | { name: "transcript.text.done"; data: { text: string; usage: { seconds: number } } };

/** What is said in a recording, segment by segment -> its seconds. */
export async function transcribe(
  asked: Question,
  signal: AbortSignal,
  onsegment: (segment: Segment) => void,
): Promise<number> {
  const fields = {
    model: asked.run.name,
    response_format: "verbose_json",
    "timestamp_granularities[]": asked.run.takes?.words ? "word" : "segment",
    stream: "true",
  };
  const response = await sent("v1/audio/transcriptions", asked, fields, signal);
  let seconds = 0;
  for await (const event of toldBy<Told>(response, signal)) {
    if (event.name === "transcript.text.segment") onsegment(event.data);
    if (event.name === "transcript.text.done") seconds = event.data.usage.seconds;
  }
  return seconds;
}

const PAUSE = 0.7; // seconds of silence behind a word, after which nothing before it changes

/** How many of the segments of a recording that goes on stay as they are: all but the last, and that
 * too after a pause. `to`: until when it was heard. */
export function settledOf(segments: Segment[], to: number): number {
  const last = segments.at(-1);
  const end = last?.words?.at(-1)?.end;
  return segments.length - (last && (end === undefined || to - end < PAUSE) ? 1 : 0);
}

/** All that is said in some segments. */
export function textOf(segments: Segment[]): string {
  return segments.map(({ text }) => text.trim()).join(" ");
}

/** The same, so many seconds later. */
export function later(segment: Segment, seconds: number): Segment {
  const moved = <T extends { start: number; end: number }>(one: T): T => ({ ...one, start: one.start + seconds, end: one.end + seconds });
  const words = segment.words?.map(moved);
  return words ? { ...moved(segment), words } : moved(segment);
}

export type Layout = "txt" | "srt" | "vtt";

/** A file of some segments: as `dragoman transcribe` writes it. */
export function captions(segments: Segment[], layout: Layout): string {
  if (layout === "txt") return segments.map(({ text }) => `${text}\n`).join("");
  const isSrt = layout === "srt";
  const cues = segments.map(({ start, end, text }, n) => {
    const times = [start, end].map((seconds) => clock(seconds, isSrt ? "," : "."));
    const cue = text.replaceAll("-->", "->");
    return `${isSrt ? `${n + 1}\n` : ""}${times.join(" --> ")}\n${isSrt ? cue : escaped(cue)}\n\n`;
  });
  return (isSrt ? "" : "WEBVTT\n\n") + cues.join("");
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}

/** Hours, minutes, seconds and thousandths: as a recording of a day's length at most has them. */
function clock(seconds: number, mark: string): string {
  return new Date(Math.round(seconds * 1000)).toISOString().slice(11, 23).replace(".", mark);
}

/** A time as people read it: 1:02.3. */
export function shownTime(seconds: number): string {
  const tenths = Math.floor(seconds * 10);
  return `${Math.floor(tenths / 600)}:${String(Math.floor(tenths / 10) % 60).padStart(2, "0")}.${tenths % 10}`;
}
