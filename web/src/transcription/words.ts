// The words of runs that write down what is said.

import { wordsWith } from "../page/preferences.svelte";

export const words = wordsWith({
  transcribe_answer: ["What is said in it", "녹음에서 들리는 말"],
  transcribe_empty: ["The text appears here, a part at a time, with when it is said.", "받아쓴 글이 구간마다 시각과 함께 여기에 나타납니다."],
  transcribe_speak: ["Speak: the text appears as you go.", "말하는 대로 글이 나타납니다."],
  transcribe_listening: ["What is grey may still change. When you stop, the whole recording is read once more.",
    "회색 글은 아직 바뀔 수 있습니다. 녹음을 마치면 녹음 전체를 처음부터 다시 받아씁니다."],
  transcribe_silent: ["Nothing is said in this recording.", "이 녹음에는 말소리가 없습니다."],
  transcribe_drop: ["Drop the file to transcribe it", "파일을 놓으면 받아씁니다"],
  transcribe_jump: ["Play from {time}", "이 구간 듣기: {time}"],
  transcribe_word: ["{word}: play from {time}", "{word}: {time}부터 듣기"],
  transcribe_look: ["What the model hears, and where it looked", "모델이 들은 소리와 본 곳"],
  transcribe_seen: ["The bands of the spectrum", "스펙트럼의 대역"],
  transcribe_spikes: ["Where CTC is sure of a token: {tokens}", "CTC가 토큰을 확신하는 곳: {tokens}"],
  transcribe_look_note: ["The spectrum, time from left to right, low sounds at the bottom. Below it, where CTC is sure of a token. Click a token to see where the decoder looked while it wrote it.",
    "스펙트럼입니다. 시간은 왼쪽에서 오른쪽으로 흐르고 낮은 소리가 아래에 있습니다. 그 아래는 CTC가 토큰을 확신하는 곳입니다. 토큰을 누르면 디코더가 그 토큰을 쓰는 동안 본 곳을 보여 줍니다."],
  transcribe_whole: ["Of the whole recording: {text}", "전체 녹음에서 들은 말: {text}"],
  transcribe_done: ["Transcribed. Words: {words}.", "받아쓰기를 마쳤습니다. 단어 {words}개입니다."],
  transcribe_hint: ["Click a word to hear it. A dotted line marks words of which the model is less than 80 % sure, a double line those below 50 %.",
    "단어를 누르면 그 부분을 들을 수 있습니다. 점선 밑줄이 그어진 단어는 확률이 80% 미만, 이중 밑줄이 그어진 단어는 50% 미만입니다."],
  transcribe_hint_parts: ["Click a time to hear the part. This run was trained without CTC, so it does not know when each word is said.",
    "시각을 누르면 그 구간을 들을 수 있습니다. 이 모델은 CTC 없이 학습되어 단어별 시각은 알 수 없습니다."],
  transcribe_how_title: ["How a recording becomes text", "녹음이 글이 되기까지"],
  transcribe_how: ["A recording that is longer than those that the model has learned from is cut at silences. Of each part, the model reads the bands of the spectrum, a hundred times a second, and writes the most probable text. If it was trained with CTC, each row of its encoder also predicts a token or none: that tells when each word is said.",
    "학습에 쓴 녹음보다 긴 녹음은 조용한 곳에서 자릅니다. 모델은 구간마다 스펙트럼의 대역을 1초에 100번 읽고 가장 확률이 높은 글을 씁니다. CTC로 학습했다면 인코더의 벡터마다 토큰 하나를 예측하거나 ‘없음’으로 답하므로, 단어마다 언제 들리는지 알 수 있습니다."],
});
