// The words of the tab Run.

export const runEnglish = {
  run: "Run",
  run_choose: "Run",
  run_beside: "Beside",
  run_none: "none",
  run_scores: "Scores",
  run_not_measured: "not measured on this test set",
  run_signature: "Signature",
  run_facts: "Facts",
  run_curves: "Training",
  run_smooth: "Smoothing",
  run_as_measured: "as measured",
  run_log: "Logarithmic axis",
  run_samples: "Sentences it never saw",
  run_data: "Data",
  run_recipe: "Recipe",
  run_limits: "What not to trust it with",
  recipe_about: "Everything about this run in one file. Trained again with it, it comes out the same.",
  source: "Source",
  model_wrote: "Model",
  person_wrote: "Person",
  measured_on: "Measured on",
  no_scores: "This run has not been measured yet: dragoman evaluate does it.",
  chart_label: (title: string, last: string) =>
    `${title}. Last: ${last}. Arrow keys go from point to point.`,
  /** What terms mean, for those who point at them. */
  terms: {
    BLEU: "How many runs of one to four words the translations share with those of people, 0 to 100. Only scores of one test set and one signature can be compared.",
    chrF: "The same for runs of letters: kinder to other forms of the right word.",
    "chrF++": "chrF with runs of one and two words as well.",
    TER: "How much a person would have to edit, in percent of the words: less is better.",
    perplexity: "Among how many equally probable tokens the model would be as unsure. Only those of one vocabulary compare.",
    bits_per_byte: "Bits that a code by this model needs for each byte of the text: less is better. They compare across vocabularies.",
    "nats per token": "−log P of the right token, to the base e. With label smoothing it does not go down to 0.",
    "before clipping": "The length of the gradient as it was, before it was cut to the greatest that the recipe allows.",
    RMS: "Root mean square: the square root of the mean of the squares, the usual size of a number of the row.",
    "log P": "The logarithm of a probability, to the base e: 0 is certain, −0.7 is one half, −2.3 one tenth.",
  } as Record<string, string>,
};

export const runWordsKorean: typeof runEnglish = {
  run: "학습 기록",
  run_choose: "모델",
  run_beside: "비교할 모델",
  run_none: "없음",
  run_scores: "점수",
  run_not_measured: "이 테스트 데이터로는 평가하지 않음",
  run_signature: "평가 서명",
  run_facts: "개요",
  run_curves: "학습 과정",
  run_smooth: "평활화",
  run_as_measured: "원래 값",
  run_log: "로그 축",
  run_samples: "학습할 때 보지 못한 문장",
  run_data: "데이터",
  run_recipe: "레시피",
  run_limits: "이 모델을 믿으면 안 되는 경우",
  recipe_about: "이 학습의 모든 설정이 담긴 파일입니다. 이 파일로 다시 학습하면 같은 결과가 나옵니다.",
  source: "원문",
  model_wrote: "모델",
  person_wrote: "사람",
  measured_on: "테스트 데이터",
  no_scores: "아직 평가하지 않았습니다. dragoman evaluate 명령으로 평가할 수 있습니다.",
  chart_label: (title, last) => `${title}. 마지막 값: ${last}. 화살표 키로 점 사이를 옮깁니다.`,
  terms: {
    BLEU: "모델의 번역과 사람의 번역이 연속한 단어 1–4개의 묶음(n-gram)을 얼마나 공유하는지 나타냅니다(0–100). 테스트 데이터와 평가 서명이 같은 점수끼리만 비교할 수 있습니다.",
    chrF: "글자의 묶음을 같은 방식으로 셉니다. 단어의 형태만 다른 번역에는 BLEU보다 덜 엄격합니다.",
    "chrF++": "chrF에 단어 1–2개의 묶음을 더해 센 점수입니다.",
    TER: "사람이 고쳐야 하는 양을 단어 수에 대한 백분율로 나타냅니다. 낮을수록 좋습니다.",
    perplexity: "모델의 확신이 확률이 같은 토큰 몇 개 가운데 고르는 것과 같은지를 나타냅니다. 어휘가 같은 모델끼리만 비교할 수 있습니다.",
    bits_per_byte: "이 모델로 글을 압축할 때 1바이트마다 드는 비트 수입니다. 작을수록 좋고, 어휘가 달라도 비교할 수 있습니다.",
    "nats per token": "정답 토큰의 −log P(밑이 e인 로그)입니다. 레이블 스무딩을 쓰면 0까지 내려가지 않습니다.",
    "before clipping": "레시피가 허용하는 최댓값으로 자르기 전의 기울기 노름입니다.",
    RMS: "제곱평균제곱근입니다. 제곱의 평균에 제곱근을 씌운 값으로, 벡터 성분의 대표적인 크기입니다.",
    "log P": "확률의 자연로그입니다. 0이면 확실하고, −0.7이면 1/2, −2.3이면 1/10입니다.",
  },
};

/** What the server says of a run in English. */
const NAMED: Record<string, string> = {
  Loss: "손실",
  "Development scores": "검증 데이터 점수",
  "Learning rate": "학습률",
  "Gradient norm": "기울기 노름",
  "nats per token": "토큰당 nat",
  "before clipping": "클리핑 전",
  "target tokens per second": "초당 번역문 토큰",
  "bits per byte": "바이트당 비트",
  Speed: "속도",
  training: "학습 데이터",
  development: "검증 데이터",
  best: "최고",
  update: "업데이트",
  updates: "업데이트",
  parameters: "파라미터",
  vocabulary: "어휘",
  "target tokens seen": "학습한 번역문 토큰",
  "masked tokens seen": "학습한 가린 토큰",
  "texts seen": "학습한 글",
  time: "시간",
  weights: "저장된 가중치",
  unknown: "알 수 없음",
  "Sentence pairs": "문장 쌍",
  Pairs: "문장 쌍",
  Texts: "텍스트",
  Corpora: "말뭉치",
  Cleaning: "정제",
  "What looks wrong": "문제가 있어 보이는 것",
  part: "구분",
  pairs: "문장 쌍",
  texts: "텍스트",
  text: "텍스트",
  what: "내용",
  lines: "줄",
  name: "이름",
  weight: "비중",
  filter: "필터",
  dropped: "제외",
  "first examples": "첫 예시",
  "SHA-256 (first 16 digits)": "SHA-256 (앞 16자리)",
  train: "학습",
  dev: "검증",
  test: "테스트",
  invalid_utf8: "잘못된 UTF-8",
  control_characters: "제어 문자",
  empty: "빈 줄",
  length: "길이",
  length_ratio: "길이 비율",
  identical: "원문과 같은 번역문",
  duplicates: "중복",
  language: "다른 언어",
  "BLEU, lower-cased Moses tokens": "BLEU, 소문자 Moses 토큰",
  "the demo's test set": "데모의 테스트 데이터",
  "the held-out test set": "따로 떼어 둔 테스트 데이터",
  "The demo corpus is synthetic: a small grammar wrote it. Its scores say that the machinery works, nothing about real text.":
    "데모 말뭉치는 작은 문법으로 만든 합성 데이터입니다. 점수는 프로그램이 제대로 작동한다는 뜻일 뿐, 실제 글에 대해서는 아무것도 말해 주지 않습니다.",
  "It knows some 300 words and a few kinds of sentences.":
    "아는 단어가 300개 남짓이고, 문장의 종류도 몇 가지뿐입니다.",
  "It translates sentence by sentence and knows nothing of those around.":
    "문장을 하나씩 따로 번역하며, 앞뒤 문장은 알지 못합니다.",
  "It may leave out, add or invent; figures and names deserve a second look.":
    "내용을 빠뜨리거나 덧붙이거나 지어낼 수 있습니다. 숫자와 이름은 다시 확인하세요.",
  "The text is generated: nothing is cleaned.": "프로그램이 만든 글이므로 정제하지 않습니다.",
  "It writes what its training text makes likely, whether it is true or not.":
    "학습 데이터에 비추어 그럴듯한 것을 쓸 뿐이며, 사실인지는 알지 못합니다.",
  accuracy: "정확도",
  macro_f1: "매크로 F1",
  "It fills in what its training text makes likely, whether it is true or not.":
    "학습한 글에서 그럴듯한 내용으로 빈칸을 채웁니다. 사실인지는 가리지 않습니다.",
  "It chooses among the labels that it was trained on, also where none of them fits.":
    "학습한 레이블 가운데에서만 고르며, 알맞은 것이 없어도 하나를 고릅니다.",
  f1: "F1",
  precision: "정밀도",
  recall: "재현율",
  exact: "완전 일치",
  tags: "품사 정확도",
  "It parses sentences whose words are cut as those of its treebank are.":
    "단어를 학습한 트리뱅크와 같은 방식으로 나눈 문장의 구문을 분석합니다.",
  "Each parse is a tree over all words, also where the sentence makes no sense.":
    "문장이 말이 되지 않아도 모든 단어를 묶은 트리를 만듭니다.",
};

const PATTERNS: [RegExp, (...found: string[]) => string][] = [
  [/^(.+) \(moving average\)$/, (curve) => `${runKorean(curve)} (가중치의 이동 평균)`],
  [/^(.+) \(mean of the last\)$/, (curve) => `${runKorean(curve)} (마지막 가중치들의 평균)`],
  [/^(.+), ([\d,]+) sentences$/, (test, count) => `${runKorean(test ?? "")}, 문장 ${count}개`],
  [/^([\d,]+) (\S+) tokens(, shared)?$/, (count, kind, shared) => `${kind} 토큰 ${count}개${shared ? ", 두 언어가 함께 사용" : ""}`],
  [/^([\d,]+) source, ([\d,]+) target (\S+) tokens$/, (s, t, kind) => `${kind} 토큰, 원문 ${s}개, 번역문 ${t}개`],
  [/^([\d,]+) of ([\d,]+)$/, (done, all) => `${done} / ${all}`],
  [/^([\d.,]+) minutes, ([\d,]+) tokens\/s$/, (minutes, speed) => `${minutes}분, 초당 토큰 ${speed}개`],
  [/^best, update (\d+)$/, (update) => `검증에서 가장 좋았을 때 (업데이트 ${update})`],
  [/^last, update (\d+)$/, (update) => `마지막 (업데이트 ${update})`],
  [/^average, update (\d+)$/, (update) => `평균 (업데이트 ${update})`],
  [/^([\d,]+) (?:pairs|texts) read, ([\d,]+) kept$/, (read, kept) => `읽은 것 ${read}개, 남긴 것 ${kept}개`],
];

/** In Korean, or as it is where there is no word for it (names, numbers, texts of others). */
export function runKorean(text: string): string {
  if (Object.hasOwn(NAMED, text)) return NAMED[text] ?? text;
  for (const [pattern, told] of PATTERNS) {
    const found = pattern.exec(text);
    if (found) return told(...found.slice(1));
  }
  return text;
}
