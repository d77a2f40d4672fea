// The texts that views share, in English and in Korean. Those of one view are in its folder.

import { filesEnglish, filesKorean } from "../files/words";
import { figuresEnglish, figuresKorean } from "../figures/words";
import { lookEnglish } from "../look/words";
import { lookKorean } from "../look/words_korean";
import { runEnglish, runWordsKorean } from "../run/words";

const en = {
  ...lookEnglish,
  ...figuresEnglish,
  ...runEnglish,
  ...filesEnglish,
  what: "dragoman trains Transformers, the models behind machine translation and chat, and shows what they have learned. A trained model is called a run.",
  does: {
    look: "Look opens a run while it works on one text: where it looked, what it chose among, and what becomes of it if you hide a word or switch off a head.",
    figures: "Figures draws what “Attention Is All You Need” explains, with real numbers: many of them from a run, for a sentence of yours.",
    run: "A run is one trained model with all that belongs to it: its scores, the course of its training, its data and its recipe.",
  },
  commands_title: "The same in a shell",
  commands_curl: "From this server:",
  commands_program: "With dragoman itself (if the run lies under runs/):",
  skip: "Skip to the translator",
  tabs: "Views",
  theme: "Colours",
  theme_auto: "Auto",
  theme_light: "Light",
  theme_dark: "Dark",
  ui_language: "Language of this page",
  api: "API",
  model: "Model",
  clear: "Clear",
  field_full: (most: string) => `A text may have ${most} characters here: what was beyond them is not in it.`,
  language_unknown: "Language not known",
  copy: "Copy",
  copied: "Copied",
  not_copied: "The browser did not let it be copied",
  share: "Link",
  shared: "Link copied",
  shared_without: "Link copied, without the text: it is too long for an address",
  share_title: "Copy a link to all that you see here. Your text stands behind the # of the address, which no server sees.",
  words_help: "Use the arrow keys to move from word to word, and Enter to see what else could stand there.",
  looking: "Looking…",
  nothing_else: "Nothing else is at all likely.",
  close: "Close",
  undo: "Undo",
  error: "That did not work",
  offline: "The server cannot be reached.",
  retry: "Try again",
  no_such_run: (run: string, others: string) =>
    `This link is to the run “${run}”, which this server does not have, or not in this view. It has: ${others}.`,
  take_run: (run: string) => `Open it with ${run}`,
  key_needed: "This server needs an API key.",
  key_label: "API key",
  key_save: "Use key",
  loading: "Loading…",
  knows_title: "What does this run know?",
  knows_words: "Words that this run knows",
  knows_all: "These are all of them, the commonest first:",
  knows_some: (count: string) => `The ${count} commonest:`,
  knows_longest: (words: string) =>
    `Nearly all of them have at most ${words} words; it may leave out parts of longer sentences.`,
  knows_elsewhere: "Whatever is about other things, it can only guess at.",
  try_these: "Try:",
  knows_texts: (count: string) => `It has learned from ${count} texts.`,
  knows_files: (count: string) => `It has learned from ${count} files. For files unlike them, it can only guess.`,
};

export type Words = typeof en;

const ko: Words = {
  ...lookKorean,
  ...figuresKorean,
  ...runWordsKorean,
  ...filesKorean,
  what: "dragoman은 기계 번역과 챗봇에 쓰이는 모델인 Transformer를 학습시키고, 모델이 배운 것을 보여 주는 도구입니다.",
  does: {
    look: "모델이 글 하나를 처리하는 과정을 들여다봅니다. 어디를 보았는지, 어떤 후보를 비교했는지, 단어를 가리거나 헤드를 끄면 어떻게 되는지 볼 수 있습니다.",
    figures: "논문 “Attention Is All You Need”의 내용을 실제 계산한 수로 그립니다. 모델과 문장을 직접 고를 수 있는 그림도 많습니다.",
    run: "학습된 모델 하나의 모든 기록입니다. 점수, 학습 과정, 데이터, 레시피가 있습니다.",
  },
  commands_title: "셸에서 실행하기",
  commands_curl: "이 서버에 요청하기:",
  commands_program: "dragoman으로 실행하기 (모델이 runs/ 아래에 있을 때):",
  skip: "번역기로 건너뛰기",
  tabs: "보기",
  theme: "색상",
  theme_auto: "자동",
  theme_light: "밝게",
  theme_dark: "어둡게",
  ui_language: "화면 언어",
  api: "API",
  model: "모델",
  clear: "지우기",
  field_full: (most) => `여기에는 ${most}자까지 쓸 수 있습니다. 그보다 긴 부분은 들어가지 않았습니다.`,
  language_unknown: "언어 미상",
  copy: "복사",
  copied: "복사했습니다",
  not_copied: "브라우저가 복사를 허용하지 않았습니다",
  share: "링크",
  shared: "링크를 복사했습니다",
  shared_without: "링크를 복사했습니다. 글은 주소에 담기에 너무 길어 빠졌습니다.",
  share_title: "지금 보이는 것을 그대로 담은 링크를 복사합니다. 글은 주소의 # 뒤에 들어가며, 서버로는 전송되지 않습니다.",
  words_help: "화살표 키로 단어 사이를 이동하고, Enter 키로 그 자리에 올 수 있는 다른 말을 봅니다.",
  looking: "찾는 중…",
  nothing_else: "다른 가능성은 거의 없습니다.",
  close: "닫기",
  undo: "되돌리기",
  error: "처리하지 못했습니다",
  offline: "서버에 연결할 수 없습니다.",
  retry: "다시 시도",
  no_such_run: (run, others) =>
    `이 링크는 “${run}” 모델을 가리키지만, 이 서버에는 그 모델이 없거나 이 화면에서 쓸 수 없습니다. 쓸 수 있는 모델: ${others}`,
  take_run: (run) => `${run} 모델로 열기`,
  key_needed: "이 서버는 API 키가 필요합니다.",
  key_label: "API 키",
  key_save: "키 사용",
  loading: "불러오는 중…",
  knows_title: "이 모델은 무엇을 아나요?",
  knows_words: "이 모델이 아는 단어",
  knows_all: "아래는 그 단어 전부이며, 자주 나온 순서입니다.",
  knows_some: (count) => `가장 자주 나온 단어 ${count}개:`,
  knows_longest: (words) =>
    `거의 모든 문장이 ${words}단어 이하입니다. 더 긴 문장은 일부를 빠뜨릴 수 있습니다.`,
  knows_elsewhere: "다른 내용의 글은 짐작해서 옮길 뿐입니다.",
  try_these: "예문:",
  knows_texts: (count) => `글 ${count}개로 학습했습니다.`,
  knows_files: (count) => `파일 ${count}개로 학습했습니다. 이와 다른 파일에 대해서는 짐작만 할 수 있습니다.`,
};

export const languages = { en, ko };
export type UiLanguage = keyof typeof languages;
/** A text, or an object of texts, in every language. */
export type Texts<Own> = Record<UiLanguage, Own>;
