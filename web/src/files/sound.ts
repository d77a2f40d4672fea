// Sound as a run reads it: one channel, of its rate, as a WAV file.

/** What a browser can decode, at a rate; null where it cannot, and the server may say why. */
export async function atRate(file: Blob, rate: number): Promise<Blob | null> {
  try {
    const decoded = await new OfflineAudioContext(1, 1, rate).decodeAudioData(await file.arrayBuffer());
    const channels = Array.from({ length: decoded.numberOfChannels }, (_, n) => decoded.getChannelData(n));
    const mean = Float32Array.from({ length: decoded.length }, (_, i) => channels.reduce((sum, one) => sum + (one[i] ?? 0), 0) / channels.length);
    return wav(mean, rate);
  } catch {
    return null;
  }
}

/** The same samples at another rate. */
export async function resampled(samples: Float32Array<ArrayBuffer>, from: number, to: number): Promise<Float32Array> {
  if (from === to || !samples.length) return samples;
  const context = new OfflineAudioContext(1, Math.ceil((samples.length * to) / from), to);
  const buffer = context.createBuffer(1, samples.length, from);
  buffer.copyToChannel(samples, 0);
  const source = context.createBufferSource();
  source.buffer = buffer;
  source.connect(context.destination);
  source.start();
  return (await context.startRendering()).getChannelData(0);
}

/** A WAV file of one channel, 16 bits a sample. */
export function wav(samples: Float32Array, rate: number): Blob {
  const view = new DataView(new ArrayBuffer(44 + 2 * samples.length));
  const text = (at: number, what: string): void => [...what].forEach((c, i) => view.setUint8(at + i, c.charCodeAt(0)));
  text(0, "RIFF");
  view.setUint32(4, 36 + 2 * samples.length, true);
  text(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true); // PCM
  view.setUint16(22, 1, true); // one channel
  view.setUint32(24, rate, true);
  view.setUint32(28, 2 * rate, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  text(36, "data");
  view.setUint32(40, 2 * samples.length, true);
  samples.forEach((value, i) => view.setInt16(44 + 2 * i, Math.max(-32768, Math.min(32767, Math.round(value * 32768))), true));
  return new Blob([view.buffer], { type: "audio/wav" });
}
