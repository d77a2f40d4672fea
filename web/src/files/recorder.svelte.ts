// A microphone that is recorded: how long already, and how loud it is.

import { resampled, wav } from "./sound";

export class Recorder {
  isOn = $state(false);
  seconds = $state(0);
  /** The loudest of the last moment, 0 to 1. */
  level = $state(0);

  #stream: MediaStream | null = null;
  #context: AudioContext | null = null;
  #parts: Float32Array[] = [];

  /** Errors: whatever the browser says where it does not allow it, or there is no microphone. */
  async start(most: number, onfull: () => void): Promise<void> {
    this.#stream = await navigator.mediaDevices.getUserMedia({ audio: true });
    try {
      const context = (this.#context = new AudioContext());
      await context.audioWorklet.addModule(new URL("./pcm_worklet.js", import.meta.url).href);
      const node = new AudioWorkletNode(context, "pcm", { numberOfOutputs: 0 });
      this.#parts = [];
      let count = 0;
      node.port.onmessage = ({ data }: MessageEvent<Float32Array>) => {
        if (!this.isOn || this.seconds >= most) return;
        this.#parts.push(data);
        count += data.length;
        this.seconds = count / context.sampleRate;
        this.level = Math.max(this.level * 0.95, ...data.map(Math.abs));
        if (this.seconds >= most) onfull();
      };
      context.createMediaStreamSource(this.#stream).connect(node);
      Object.assign(this, { isOn: true, seconds: 0, level: 0 });
    } catch (error) {
      this.cancel();
      throw error;
    }
  }

  /** What was recorded, as a WAV file of a rate. */
  async stop(rate: number): Promise<Blob | null> {
    const [parts, from] = [this.#parts, this.#context?.sampleRate ?? rate];
    this.cancel();
    return await written(parts, from, rate, 0);
  }

  /** What was recorded after so many seconds, while it goes on. */
  async since(seconds: number, rate: number): Promise<Blob | null> {
    const from = this.#context?.sampleRate ?? rate;
    return await written(this.#parts, from, rate, Math.round(seconds * from));
  }

  cancel(): void {
    this.#stream?.getTracks().forEach((track) => track.stop());
    void this.#context?.close();
    this.#stream = this.#context = null;
    this.#parts = [];
    this.isOn = false;
  }
}

/** Samples after the first `skipped`, as a WAV file of a rate. */
async function written(parts: Float32Array[], from: number, rate: number, skipped: number): Promise<Blob | null> {
  const samples = new Float32Array(parts.reduce((sum, one) => sum + one.length, 0));
  let at = 0;
  for (const part of parts) {
    samples.set(part, at);
    at += part.length;
  }
  const rest = samples.slice(skipped);
  return rest.length ? wav(await resampled(rest, from, rate), rate) : null;
}
