// Hands on the samples of a microphone, the mean of its channels, as they come.
class Pcm extends AudioWorkletProcessor {
  process([channels]) {
    if (channels?.length) {
      const mean = channels[0].map((_, i) => channels.reduce((sum, one) => sum + one[i], 0) / channels.length);
      this.port.postMessage(mean, [mean.buffer]);
    }
    return true;
  }
}

registerProcessor("pcm", Pcm);
