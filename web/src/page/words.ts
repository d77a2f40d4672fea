// The texts that views share. Those of one view are in its folder.

import type { figures } from "../figures/words";
import { files } from "../files/words";
import type { look } from "../look/words";
import type { run } from "../run/words";
import { both, type Texts } from "./texts";

const page = both({
  what: ["dragoman trains Transformers, the models behind machine translation and chat, and shows what they have learned. A trained model is called a run.",
    "dragoman은 기계 번역과 챗봇에 쓰이는 모델인 Transformer를 학습시키고, 모델이 배운 것을 보여 주는 도구입니다."],
  /** What the three places are called, and what they are for. */
  places: {
    use: ["Use", "써 보기"],
    how: ["How it works", "작동 원리"],
    run: ["Run", "학습 기록"],
  },
  does: {
    use: ["Use a run: give it a text, a picture or a recording, and see what it makes of it.",
      "모델을 써 봅니다. 글이나 이미지, 녹음을 넣으면 모델의 결과를 볼 수 있습니다."],
    how: ["See how a Transformer computes, with the numbers of this run: step by step, figure by figure, or freely.",
      "Transformer의 계산 과정을 이 모델의 실제 값으로 봅니다. 차례대로, 그림별로, 또는 자유롭게 살펴볼 수 있습니다."],
    run: ["Lists all runs with their scores. Choose one to see its training, data and recipe.",
      "모든 모델의 점수를 비교하고, 모델마다 학습 과정, 데이터, 레시피를 볼 수 있습니다."],
  },
  lesson: ["Lesson", "수업"],
  guide: ["Help", "안내서"],
  kinds: {
    text: ["Text", "글"],
    recordings: ["Sound", "소리"],
    pictures: ["Pictures", "이미지"],
  },
  save_as: ["Save", "저장"],
  characters: ["{count} of {most} characters", "{count} / {most}자"],
  commands_title: ["The same in a shell", "셸에서 실행하기"],
  commands_curl: ["From this server:", "이 서버에 요청하기:"],
  commands_program: ["With dragoman itself (if the run lies under runs/):", "dragoman으로 실행하기 (모델이 runs/ 아래에 있을 때):"],
  skip: ["Skip to the content", "본문으로 건너뛰기"],
  tabs: ["Views", "화면"],
  theme: ["Colours", "색상"],
  theme_auto: ["Auto", "자동"],
  theme_light: ["Light", "밝게"],
  theme_dark: ["Dark", "어둡게"],
  ui_language: ["Language of this page", "표시 언어"],
  api: ["API", "API"],
  model: ["Model", "모델"],
  clear: ["Clear", "지우기"],
  field_full: ["A text may have {most} characters here: what was beyond them is not in it.", "여기에는 {most}자까지 쓸 수 있습니다. 그보다 긴 부분은 들어가지 않았습니다."],
  language_unknown: ["Language not known", "언어 미상"],
  copy: ["Copy", "복사"],
  copied: ["Copied", "복사했습니다"],
  not_copied: ["The browser did not let it be copied", "브라우저가 복사를 허용하지 않았습니다"],
  share: ["Link", "링크"],
  shared: ["Link copied", "링크를 복사했습니다"],
  shared_without: ["Link copied, without the text: it is too long for an address", "링크를 복사했습니다. 글은 주소에 담기에 너무 길어 빠졌습니다."],
  share_title: ["Copy a link to all that you see here. Your text stands behind the # of the address, which no server sees.",
    "지금 보이는 것을 그대로 담은 링크를 복사합니다. 글은 주소의 # 뒤에 들어가며, 서버로는 전송되지 않습니다."],
  words_help: ["Use the arrow keys to move from word to word, and Enter to see what else could stand there.",
    "화살표 키로 단어 사이를 이동하고, Enter 키로 그 자리에 올 수 있는 다른 말을 봅니다."],
  looking: ["Looking…", "찾는 중…"],
  nothing_else: ["Nothing else is at all likely.", "다른 가능성은 거의 없습니다."],
  close: ["Close", "닫기"],
  cancel: ["Cancel", "취소"],
  download: ["Download", "내려받기"],
  sure_title: ["How sure is the model?", "모델은 얼마나 확신하나요?"],
  words_hint: ["Type a sentence, its words between spaces: The cat sleeps .", "단어 사이를 띄어 문장을 입력하세요: The cat sleeps ."],
  undo: ["Undo", "되돌리기"],
  error: ["That did not work", "처리하지 못했습니다"],
  offline: ["The server cannot be reached.", "서버에 연결할 수 없습니다."],
  retry: ["Try again", "다시 시도"],
  no_such_run: ["This link is to the run “{run}”, which this server does not have. It has: {others}.",
    "이 링크는 “{run}” 모델을 가리키지만, 이 서버에는 그 모델이 없습니다. 쓸 수 있는 모델: {others}"],
  take_run: ["Open it with {run}", "{run} 모델로 열기"],
  key_needed: ["This server needs an API key.", "이 서버를 쓰려면 API 키가 필요합니다."],
  key_label: ["API key", "API 키"],
  key_save: ["Use key", "키 사용"],
  loading: ["Loading…", "불러오는 중…"],
  knows_title: ["What does this run know?", "이 모델은 무엇을 아나요?"],
  knows_words: ["Words that this run knows", "이 모델이 아는 단어"],
  knows_all: ["This run knows these {count} words. Click one to type it:", "이 모델이 아는 단어 {count}개입니다. 누르면 입력됩니다."],
  knows_some: ["The {count} words that this run has read most. Click one to type it:", "이 모델이 가장 자주 읽은 단어 {count}개입니다. 누르면 입력됩니다."],
  knows_longest: ["Nearly all of them have at most {words} words; it may leave out parts of longer sentences.",
    "학습한 문장은 거의 모두 {words}단어 이하입니다. 더 긴 문장은 일부를 빠뜨릴 수 있습니다."],
  knows_elsewhere: ["Whatever is about other things, it can only guess at.", "그 밖의 내용은 짐작만 할 수 있습니다."],
  look: ["Look", "들여다보기"],
  look_into_title: ["See where every head looked in this text", "이 글에서 각 헤드가 어디를 보았는지 봅니다"],
  word: ["Word", "단어"],
  beam_p: ["Probability", "확률"],
  map_hint: ["Scroll with Ctrl, or +, to zoom; scroll to move.", "Ctrl+스크롤이나 + 키로 확대하고, 스크롤해서 옮깁니다."],
  map_zoom_in: ["Zoom in", "확대"],
  map_zoom_out: ["Zoom out", "축소"],
  map_fit: ["Show all", "전체 보기"],
  figures_data: ["Numbers (CSV)", "수치 (CSV)"],
  figures_picture: ["Picture (SVG)", "이미지 파일 (SVG)"],
  try_these: ["Try:", "예문:"],
  knows_texts: ["It has learned from {count} texts.", "글 {count}개로 학습했습니다."],
  knows_files: ["It has learned from {count} files. For files unlike them, it can only guess.", "파일 {count}개로 학습했습니다. 이와 다른 파일은 짐작만 할 수 있습니다."],
});

/** The texts that are there from the beginning; the places How it works and Run bring theirs: words_places.ts. */
type Early = (typeof page)["en"] & (typeof files)["en"];
export type Words = Early & (typeof figures)["en"] & (typeof look)["en"] & (typeof run)["en"];
export const languages = { en: { ...files.en, ...page.en }, ko: { ...files.ko, ...page.ko } } as Texts<Words>;
export type { Texts, UiLanguage } from "./texts";
