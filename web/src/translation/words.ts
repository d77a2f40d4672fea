// The words of runs that translate.

import { both } from "../page/texts";

export const texts = both({
  tab: ["Translate", "번역"],
  about: ["Translates your text as you type. Click a word to see what else could stand there.",
    "학습된 모델이 입력하는 대로 번역합니다. 단어를 누르면 그 자리에 올 수 있는 다른 말을 볼 수 있습니다."],
  to: ["to", "번역문"],
  swap: ["Swap languages", "언어 바꾸기"],
  source_label: ["Text in {language}", "{language} 원문"],
  source_hint: ["Type or paste text…", "번역할 글을 입력하거나 붙여 넣으세요…"],
  target_label: ["Translation into {language}", "{language} 번역문"],
  target_hint: ["The translation appears here as you type.", "입력하는 대로 번역이 여기에 나타납니다."],
  done: ["Translation: {text}", "번역: {text}"],
  less_sure: ["less sure", "조금 불확실"],
  mark_unknown: ["never read", "학습에 없던 단어"],
  mark_omitted: ["left out", "빠진 단어"],
  pair_title: ["Change one word", "단어 하나 바꾸기"],
  pair_waits: ["One word decides what the rest means: change it, and watch the translation.", "단어 하나가 나머지의 뜻을 정합니다. 바꾸면서 번역을 지켜보세요."],
  pair_arc: ["“{word}” looks at “{seen}” ({share}: layer {layer}, head {head} of the encoder).", "“{word}” 단어가 “{seen}” 단어를 봅니다({share}, 인코더 {layer}층 헤드 {head})."],
  unsure: ["unsure", "불확실"],
  confidence_1: ["For every word it writes, the model spreads its belief over all words that could stand there, given your text and the words before. The figure is the share that this word got.",
    "모델은 단어를 하나 쓸 때마다, 원문과 앞의 단어를 보고 그 자리에 올 수 있는 모든 단어에 확률을 나누어 줍니다. 숫자는 이 단어가 받은 확률입니다."],
  confidence_2: ["Words with a dotted line got less than 80\u00a0%, with a double line less than 50\u00a0%. A low figure often means that several good words compete; a high one does not mean that the word is right.",
    "점선 밑줄이 그어진 단어는 확률이 80% 미만, 이중 밑줄이 그어진 단어는 50% 미만입니다. 확률이 낮으면 알맞은 단어가 여럿 있다는 뜻일 때가 많습니다. 확률이 높다고 해서 꼭 옳은 단어는 아닙니다."],
  word_label: ["{word}: the model gave it {percent}", "{word}, 모델의 확률 {percent}"],
  word_title: ["{percent}. Click to see what else could stand here.", "{percent}. 누르면 이 자리에 올 수 있는 다른 말을 보여 줍니다."],
  here_stands: ["The model gave “{word}” {percent}", "모델이 “{word}” 단어에 준 확률 {percent}"],
  could_stand: ["What else could stand here", "이 자리에 올 수 있는 다른 말"],
  rest: ["All others together", "나머지 전체"],
  sentence_ends: ["(the sentence ends)", "(문장이 끝남)"],
  forced: ["You chose a word here.", "여기서 단어를 직접 골랐습니다."],
  others: ["Other translations", "다른 번역"],
  others_of: ["Other translations of “{sentence}”", "“{sentence}”의 다른 번역"],
  use: ["Use this translation", "이 번역 쓰기"],
  long_text: ["This text is long: it is translated, and nothing else is said of it.", "글이 길어서 번역만 하며, 확인이 필요한 곳과 다른 번역은 보여 주지 않습니다."],
  warnings: ["What is doubtful here", "확인이 필요한 곳"],
  warn_omitted: ["Seems to be left out: {words}", "번역에서 빠진 듯합니다: {words}"],
  warn_omitted_title: ["The translation is as probable without these words of the source as with them.",
    "원문에서 이 단어들을 빼도 이 번역의 확률이 낮아지지 않습니다. 번역이 이 단어들을 쓰지 않은 것입니다."],
  warn_unknown: ["Never read in training: {words}", "학습 데이터에 없던 단어입니다: {words}"],
  warn_unknown_title: ["What becomes of a word that the run has never read is guesswork.", "학습 데이터에 없던 단어는 짐작해서 옮길 수밖에 없습니다."],
  warn_language: [(text: string, reads: string, wanted: string) =>
    reads ? `${text} reads as ${reads}; this run reads ${wanted}.` : `${text} is hardly ${wanted}.`,
    (text, reads, wanted) =>
    reads
      ? `${text} – 원문의 언어: ${reads}. 이 모델이 읽는 언어: ${wanted}.`
      : `${text} – 이 모델이 읽는 언어(${wanted})가 아닌 듯합니다.`],
  warn_coverage: ["About {percent} of the source is covered.", "원문의 약 {percent}만 옮겨졌습니다."],
  warn_lost: ["A placeholder or an address is lost: {words}", "번역에서 자리표시자나 주소가 빠졌습니다: {words}"],
  warn_repeated: ["Repeats itself: {words}", "같은 말이 되풀이됩니다: {words}"],
  warn_cut_off: ["Reached its greatest length and was cut off: {sentence}", "최대 길이에 이르러 잘렸습니다: {sentence}"],
  warn_length: ["Much longer or shorter than usual: {sentence}", "원문에 비해 길이가 이례적입니다: {sentence}"],
  or: ["or", "또는"],
  look_inside: ["Look inside this sentence", "이 문장 들여다보기"],
  as_probable: ["{percent} as probable as the best", "1순위 번역 확률의 {percent}"],
  as_probable_just: ["just as probable", "1순위 번역과 확률이 같음"],
  as_probable_title: ["How probable the model holds it, beside the translation above. Its score, the logarithm of the probability over a length penalty, is {score}.",
    "모델이 계산한 확률을 1순위 번역과 비교한 값입니다. 점수(확률의 로그를 길이 페널티로 나눈 값)는 {score}입니다."],
  smoothing: ["While it learned, this run was told to leave {share} to other words even where it is certain (label smoothing). So a value around {least} or a little above is as sure as it gets.",
    "이 모델은 확실한 자리에서도 확률의 {share}를 다른 단어에 남겨 두도록 학습했습니다(레이블 스무딩). 그래서 확률이 {least} 안팎이거나 그보다 조금 높으면, 이 모델로서는 가장 확신하는 것입니다."],
  document: ["Translate a document", "문서 번역"],
  document_hint: ["Drop a file here: Word, PowerPoint, Excel, OpenDocument, HTML, Markdown, PO, XLIFF, subtitles and more. All but its text stays as it is.",
    "파일을 여기에 끌어다 놓으세요: 워드, 파워포인트, 엑셀, 오픈도큐먼트, HTML, 마크다운, PO, XLIFF, 자막 등. 글 외에는 모두 그대로 둡니다."],
  document_drop: ["Drop the file to translate it", "파일을 놓으면 번역합니다"],
  document_working: ["Translating {name}", "번역 중: {name}"],
  document_progress: ["{done} of {of} texts", "구간 {of}개 중 {done}개 번역"],
  document_done: ["{name} is translated.", "번역이 끝났습니다: {name}"],
  document_private: ["It waits for ten minutes and is gone after the download.", "10분 동안 보관하며, 내려받으면 지워집니다."],
  document_doubts: ["Look this over before you use the translation:", "번역을 쓰기 전에 확인하세요(영어로 표시됩니다)."],
});

/** What a run has learned from. */
export const learned = {
  en: (pairs: string, words: string | null) =>
    `It has learned from ${pairs} pairs of sentences${words === null ? "" : ` with ${words} different words`}.`,
  ko: (pairs: string, words: string | null) =>
    `문장 쌍 ${pairs}개로 학습했${words === null ? "습니다" : `고, 그 안의 서로 다른 단어는 ${words}개입니다`}.`,
};
