// The words of the tab Translate that tell what a run knows and what is doubtful, in both languages.

export const translateEnglish = {
  long_text: "This text is long: it is translated, and nothing else is said of it.",
  warnings: "What is doubtful here",
  warn_omitted: (words: string) => `Seems to be left out: ${words}`,
  warn_omitted_title:
    "The translation is as probable without these words of the source as with them: it owes them nothing.",
  warn_unknown: (words: string) => `Never read in training: ${words}`,
  warn_unknown_title: "What becomes of a word that the run has never read is guesswork.",
  warn_language: (text: string, reads: string, wanted: string) =>
    reads ? `${text} reads as ${reads}; this run reads ${wanted}.` : `${text} is hardly ${wanted}.`,
  warn_coverage: (percent: string) => `About ${percent} of the source is covered.`,
  warn_lost: (words: string) => `A placeholder or an address is lost: ${words}`,
  warn_repeated: (words: string) => `Repeats itself: ${words}`,
  warn_cut_off: (sentence: string) => `Reached its greatest length and was cut off: ${sentence}`,
  warn_length: (sentence: string) => `Of an unusual length for its source: ${sentence}`,
  or: "or",
  knows_title: "What does this run know?",
  knows_pairs: (pairs: string) => `It has learned from ${pairs} pairs of sentences.`,
  knows_pairs_words: (pairs: string, words: string) =>
    `It has learned from ${pairs} pairs of sentences with ${words} different words.`,
  knows_words: "Words that this run knows",
  knows_all: "These are all of them, the commonest first:",
  knows_some: (count: string) => `The ${count} commonest:`,
  knows_longest: (words: string) =>
    `Nearly all of them have at most ${words} words; it may leave out parts of longer sentences.`,
  knows_elsewhere: "Whatever is about other things, it can only guess at.",
  try_these: "Try:",
  look_inside: "Look inside this sentence",
  as_probable: (percent: string) => `${percent} as probable`,
  as_probable_title: (score: string) =>
    `How probable the model holds it, beside the translation above. Its score, the logarithm of the probability over a length penalty, is ${score}.`,
  smoothing: (share: string, least: string) =>
    `While it learned, this run was told to leave ${share} to other words even where it is certain (label smoothing). So a value around ${least} or a little above is as sure as it gets.`,
};

export type TranslateWords = typeof translateEnglish;

export const translateKorean: TranslateWords = {
  long_text: "글이 길어서 번역만 하며, 의심스러운 곳과 다른 번역은 보여 주지 않습니다.",
  warnings: "확인이 필요한 곳",
  warn_omitted: (words) => `번역에서 빠진 듯합니다: ${words}`,
  warn_omitted_title: "원문에서 이 단어들을 빼도 이 번역의 확률이 낮아지지 않습니다. 번역이 이 단어들을 쓰지 않은 것입니다.",
  warn_unknown: (words) => `학습 데이터에 없던 단어입니다: ${words}`,
  warn_unknown_title: "학습 데이터에 없던 단어는 짐작해서 옮길 수밖에 없습니다.",
  warn_language: (text, reads, wanted) =>
    reads
      ? `${text} – 원문의 언어: ${reads}. 이 모델이 읽는 언어: ${wanted}.`
      : `${text} – 이 모델이 읽는 언어(${wanted})가 아닌 듯합니다.`,
  warn_coverage: (percent) => `원문의 약 ${percent}만 옮겨졌습니다.`,
  warn_lost: (words) => `번역에서 자리표시자나 주소가 빠졌습니다: ${words}`,
  warn_repeated: (words) => `같은 말이 되풀이됩니다: ${words}`,
  warn_cut_off: (sentence) => `최대 길이에 이르러 잘렸습니다: ${sentence}`,
  warn_length: (sentence) => `원문에 비해 길이가 이례적입니다: ${sentence}`,
  or: "또는",
  knows_title: "이 모델은 무엇을 아나요?",
  knows_pairs: (pairs) => `문장 쌍 ${pairs}개로 학습했습니다.`,
  knows_pairs_words: (pairs, words) =>
    `문장 쌍 ${pairs}개로 학습했고, 그 안의 서로 다른 단어는 ${words}개입니다.`,
  knows_words: "이 모델이 아는 단어",
  knows_all: "아래는 그 단어 전부이며, 자주 나온 순서입니다.",
  knows_some: (count) => `가장 자주 나온 단어 ${count}개:`,
  knows_longest: (words) =>
    `거의 모든 문장이 ${words}단어 이하입니다. 더 긴 문장은 일부를 빠뜨릴 수 있습니다.`,
  knows_elsewhere: "다른 내용의 글은 짐작해서 옮길 뿐입니다.",
  try_these: "예문:",
  look_inside: "이 문장 들여다보기",
  as_probable: (percent) => `가장 높은 확률의 ${percent}`,
  as_probable_title: (score) =>
    `모델이 계산한 확률을 가장 확률이 높은 번역과 비교한 값입니다. 점수(확률의 로그를 길이 페널티로 나눈 값)는 ${score}입니다.`,
  smoothing: (share, least) =>
    `이 모델은 확실한 자리에서도 확률의 ${share}를 다른 단어에 남겨 두도록 학습했습니다(레이블 스무딩). 그래서 가장 확신할 때도 확률이 ${least} 안팎이거나 그보다 조금 높을 뿐입니다.`,
};
