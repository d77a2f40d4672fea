// What the server says against a request, in Korean: it answers in English, with a code and the
// values that stand in its sentence (docs/serve.md).
import type { ApiError, Values } from "./api";
import { preferences } from "./preferences.svelte";

type Told = Record<string, string>;

/** By code; each takes the values of its code, numbers written as the page writes them. What ends
    with a colon goes on with the value `problem`, which is English. */
const SENTENCES: Record<string, (values: Told) => string> = {
  bad_body: () => "요청 본문이 올바른 JSON도 폼 데이터도 아닙니다. 헤더 Content-Type: application/json과 함께 JSON을 보내세요.",
  bad_form: () => "요청 본문의 폼 데이터가 올바르지 않습니다:",
  not_an_object: () => "요청 본문은 JSON 객체여야 합니다. 항목의 이름과 값을 중괄호 안에 쓰세요.",
  not_json: () => "요청 본문은 JSON이어야 합니다. 헤더 Content-Type: application/json과 함께 보내세요.",
  too_many_names: ({ names, most }) => `요청 본문의 한 객체에 이름이 ${names}개 있습니다. ${most}개까지만 받습니다.`,
  too_many_values: ({ values, most }) => `요청 본문의 목록과 객체에 값이 ${values}개 있습니다. ${most}개까지만 받습니다.`,
  missing_field: ({ field }) => `요청에 ${field} 항목이 없습니다.`,
  bad_field: ({ field }) => (field ? `요청의 ${field} 항목이 올바르지 않습니다:` : "요청의 설정이 올바르지 않습니다:"),
  late_headers: ({ seconds }) => `요청 헤더가 ${seconds}초 안에 다 도착하지 않았습니다. 다시 시도하세요.`,
  late_body: ({ seconds }) => `요청이 ${seconds}초 안에 다 도착하지 않았습니다. 다시 시도하세요.`,
  body_too_large: ({ most }) => `요청이 너무 큽니다. ${most}바이트까지 받으니 나누어 보내세요.`,

  host_not_allowed: ({ host }) => `이 서버는 ${host} 이름으로 쓸 수 없습니다. 이 서버의 이름이 맞다면 --allowed-host ${host} 옵션을 주고 서버를 시작하세요.`,
  cross_site: () => "다른 웹 사이트의 페이지가 보낸 요청이어서 처리하지 않았습니다. 그 사이트의 페이지에서 이 서버를 쓰게 하려면 서버 설정 origins에 그 사이트를 추가하세요.",
  key_needed: () => "이 서버를 쓰려면 API 키가 필요합니다. 키는 서버 운영자에게 요청하세요.",
  key_unknown: () => "등록되지 않은 API 키입니다. 서버 운영자에게 키를 요청하세요.",
  operators_only: () => "서버 운영자만 볼 수 있습니다. 접속한 주소가 운영자 주소 목록(operators)에 없습니다.",
  too_many_requests: ({ most }) => `요청은 1분에 ${most}번까지 보낼 수 있습니다. 잠시 뒤 다시 시도하거나, 여러 글을 한 요청에 모아 보내세요.`,
  too_many_at_once: ({ requests, most }) => `처리 중인 요청이 ${requests}개입니다. 동시에 ${most}개까지 받으니 하나가 끝난 뒤 다시 시도하세요.`,
  too_many_of_kind: ({ requests, kind }) => `${kind} 요청 ${requests}개가 이미 처리 중이어서 더 받을 수 없습니다. 하나가 끝난 뒤 다시 시도하세요.`,
  others_wait: ({ kind }) => `다른 사용자의 ${kind} 요청이 먼저 대기하고 있습니다. 잠시 뒤 다시 시도하세요.`,
  queue_full: ({ sentences, most }) => `이 모델에 이미 문장 ${sentences}개가 대기하고 있습니다. ${most}개까지만 대기할 수 있으니 잠시 뒤 다시 시도하세요.`,

  no_such_path: () => "요청한 주소가 이 서버에 없습니다.",
  no_such_method: () => "이 주소에서는 쓸 수 없는 HTTP 메서드입니다.",
  no_such_file: ({ file }) => `페이지에 “${file}” 파일이 없습니다.`,
  page_not_built: () => "이 서버에는 페이지가 빌드되어 있지 않아 API만 쓸 수 있습니다. make web 명령으로 빌드하세요.",
  no_such_run: ({ run, runs }) => `이 서버에는 “${run}” 모델이 없습니다. 쓸 수 있는 모델: ${runs}.`,
  other_task: ({ run, task, path }) => `${run} 모델의 과제는 ${task}입니다. 요청은 ${path} 주소로 보내세요.`,
  no_run_for_task: ({ task, command }) => `이 서버에는 ${task} 모델이 없습니다. 다음 명령으로 만들 수 있습니다: ${command}`,
  language_not_supported: ({ language, side, pairs }) =>
    `${side === "source" ? "원문" : "번역문"} 언어로 “${language}” 언어를 쓸 수 없습니다. ${pairs ? `쓸 수 있는 언어쌍: ${pairs}.` : "이 서버에는 번역 모델이 없습니다."}`,
  target_needed: ({ targets }) => `어느 언어로 번역할지 정하세요: ${targets}.`,

  too_many_texts: ({ texts, most }) => `글이 ${texts}개입니다. 한 번에 ${most}개까지 받으니 여러 요청으로 나누어 보내세요.`,
  too_many_files: ({ files, most }) => `파일이 ${files}개 이상입니다. 한 번에 ${most}개까지 받으니 여러 요청으로 나누어 보내세요.`,
  too_many_pixels: ({ pixels, most }) => `이미지의 픽셀이 모두 ${pixels}개 이상입니다. 한 번에 ${most}개까지 받으니 크기를 줄이거나 나누어 보내세요.`,
  too_much_sound: ({ duration, most }) => `녹음이 모두 ${duration}초 이상입니다. 한 번에 ${most}초까지 받으니 자르거나 나누어 보내세요.`,
  text_too_long: ({ characters, most }) => `글이 ${characters}자입니다. 한 번에 ${most}자까지 받으니 나누어 보내세요.`,
  too_many_marks: ({ marks, most }) => `결합 문자가 ${marks}개 이어져 있습니다. ${most}개까지만 받으니 줄여서 보내세요.`,
  too_many_sentences: ({ sentences, most }) => `문장이 ${sentences}개입니다. 한 번에 ${most}개까지 받으니 나누어 보내세요.`,
  too_many_tokens: ({ tokens, most }) => `글이 토큰 ${tokens}개입니다. 한 번에 ${most}개까지 읽으니 짧게 나누어 입력하세요.`,
  too_many_characters: ({ characters, tokens }) => `글이 ${characters}자입니다. 한 번에 토큰 ${tokens}개까지 읽으니 짧게 나누어 입력하세요.`,
  too_costly: ({ cost, most, work }) => `이 요청은 계산량이 너무 많습니다. 토큰 계산이 최대 ${cost}번 필요한데, 한 요청에 ${most}번까지 허용합니다. ${LESS[work ?? ""] ?? ""}`.trim(),
  beam_too_wide: ({ asked, most }) => `빔 크기와 번역 수는 ${most}까지 정할 수 있습니다. 요청한 값은 ${asked}입니다.`,
  too_many_hypotheses: ({ n_best, beam, hypotheses, most }) => `빔 크기 ${beam}에서 다른 번역 ${n_best}개를 찾으려면 가설이 ${hypotheses}개 필요한데, ${most}개까지만 다룰 수 있습니다. 다른 번역의 수나 빔 크기를 줄이세요.`,
  too_many_translations: ({ each, sentences, total, most }) => `문장 ${sentences}개를 ${each}가지씩 번역하면 번역이 ${total}개입니다. 한 번에 ${most}개까지 만드니 수를 줄이거나 나누어 보내세요.`,
  too_many_trees: ({ each, sentences, total, most }) => `문장 ${sentences}개에 트리를 ${each}개씩 만들면 ${total}개입니다. 한 번에 ${most}개까지 만드니 트리나 문장의 수를 줄이세요.`,
  too_many_labels: ({ each, texts, total, most }) => `글 ${texts}개에 레이블이 ${each}개씩, 모두 ${total}개입니다. 한 번에 ${most}개까지만 돌려주니 레이블이나 글의 수를 줄이세요.`,
  too_many_tags: ({ each, words, total, most }) => `단어 ${words}개에 태그가 ${each}개씩, 모두 ${total}개입니다. 한 번에 ${most}개까지만 돌려주니 태그나 글의 양을 줄이세요.`,
  too_many_candidates: ({ each, blanks, total, most }) => `빈칸 ${blanks}개에 후보가 ${each}개씩, 모두 ${total}개입니다. 한 번에 ${most}개까지만 돌려주니 후보의 수를 줄이세요.`,
  too_many_choices: ({ asked, most }) => `후보 ${asked}개를 요청했습니다. ${most}개까지만 돌려주니 수를 줄이세요.`,
  too_many_blanks: ({ blanks, most }) => `빈칸이 ${blanks}개입니다. 한 번에 ${most}개까지 채우니 글을 나누어 입력하세요.`,
  too_much_to_write: ({ asked, most }) => `토큰 ${asked}개를 요청했습니다. 한 번에 ${most}개까지 쓰니 수를 줄이고, 결과에서 이어 쓰세요.`,

  bad_search: () => "이 설정으로는 탐색할 수 없습니다:",
  bad_text: () => "이 글은 처리할 수 없습니다:",
  bad_document: () => "이 문서는 번역할 수 없습니다:",
  bad_file: () => "이 파일은 읽을 수 없습니다:",
  other_source: ({ run, reads }) => `${run} 모델의 입력은 ${READS[reads ?? ""] ?? reads}입니다. 글은 text 항목에, 파일은 file 항목에 넣어 보내세요.`,
  no_words_in_files: () => "why 항목은 글을 보낼 때만 쓸 수 있습니다. 파일을 보낼 때는 빼세요.",
  no_word_times: ({ run }) => `${run} 모델은 CTC 없이 학습되어 단어별 시각을 알 수 없습니다. 단어별 시각(timestamp_granularities[]=word)을 빼고 보내세요.`,
  no_such_document: () => "그런 문서가 없습니다. 이미 내려받았거나, 10분이 지났거나, 보관할 자리가 모자라 지워졌습니다. 다시 번역하세요.",
  one_text_streamed: ({ texts }) => `글이 ${texts}개입니다. 결과를 실시간으로 받을 때는 글을 하나만 보내세요.`,
  two_prefixes: () => "prefix 항목과 prefix_tokens 항목 중 하나만 쓰세요.",
  no_such_token: ({ field, vocabulary }) => `${field} 항목의 토큰 번호는 어휘 크기인 ${vocabulary}보다 작아야 합니다.`,
  no_blank: () => "빈칸이 없습니다. 채울 자리에 밑줄 세 개(___)를 쓰세요.",
  no_token_fits: () => "그 빈칸에 올 수 있는 토큰이 어휘에 없습니다.",
  no_words: ({ text }) => `${text === "0" ? "글" : `${text}번 글(0부터 셈)`}에 단어가 없어 트리를 만들 수 없습니다.`,
  no_such_word: ({ word, words }) => `단어가 ${words}개인 글에서 ${word}번 단어(0부터 셈)를 요청했습니다.`,

  cannot_look: ({ run }) => `${run} 모델은 들여다볼 수 없습니다. 글을 왼쪽에서 오른쪽으로 읽는 모델이라 인코더가 없습니다.`,
  nothing_to_look_at: () => "들여다볼 글이 없습니다.",
  no_such_sentence: ({ sentence, sentences }) => `문장이 ${sentences}개인 글에서 ${sentence}번 문장(0부터 셈)을 요청했습니다.`,
  text_is_whole: () => "이 모델은 글을 문장으로 나누지 않습니다. sentence 항목을 빼세요.",
  writes_nothing: () => "이 모델은 글을 쓰지 않습니다. prefix_tokens 항목과 given 항목을 빼세요.",
  two_outputs: () => "given 항목은 종료 기호가 없는 전체 출력입니다. prefix_tokens 항목과 함께 쓸 수 없습니다.",
  no_such_place: ({ field, tokens }) => `글이 토큰 ${tokens}개입니다. ${field} 항목의 위치는 0부터 세어 그보다 작아야 합니다.`,
  no_such_tokens: ({ side }) => `first, count 항목이 ${side === "source" ? "원문" : "번역문"} 토큰의 범위를 벗어납니다.`,
  wrong_length: ({ tokens }) => `compare 항목의 토큰 수는 모델 출력과 같은 ${tokens}개여야 합니다.`,
  no_such_head: ({ part, layers, heads }) => `그런 헤드가 없습니다. ${PARTS[part ?? ""] ?? part}에는 층이 ${layers}개, 층마다 헤드가 ${heads}개 있습니다.`,
  no_such_cell: ({ part, rows, columns }) => `그런 칸이 없습니다. ${PARTS[part ?? ""] ?? part}의 가중치는 ${rows}행 ${columns}열입니다.`,
  no_queries: ({ family }) => `쿼리, 키, 값은 Transformer의 어텐션에서만 볼 수 있습니다. 이 모델의 종류는 ${family}입니다.`,
  too_many_weights: ({ weights, most }) => `가중치가 ${weights}개입니다. 한 번에 ${most}개까지만 돌려주니 층이나 헤드를 하나씩 요청하세요.`,
  too_long_for_heads: ({ heads, source, target }) => `헤드 ${heads}개를 하나씩 끄며 계산하기에는 문장이 너무 깁니다(토큰 ${source}개와 ${target}개). 더 짧은 문장을 입력하세요.`,

  no_such_figure: ({ figure }) => `“${figure}” 그림이 없습니다.`,
  no_figure_here: ({ korean }) => `${korean}`,
  bad_figure: () => "그림을 그릴 수 없습니다:",
  no_lesson: () => "이 모델이나 문장으로는 수업을 만들 수 없습니다:",
  too_long_for_figure: ({ tokens, most }) => `문장이 토큰 ${tokens}개입니다. 그림에는 토큰을 ${most}개까지만 그릴 수 있습니다. 더 긴 문장은 들여다보기에서 볼 수 있습니다.`,

  failed: () => "서버에서 문제가 생겼습니다. 자세한 내용은 서버 로그에 있습니다.",
  shutting_down: () => "서버가 종료되는 중입니다. 잠시 뒤 다시 시도하세요.",
  too_slow: ({ seconds }) => `${seconds}초가 넘어 중단했습니다. 더 짧은 글을 보내세요.`,
};

/** Work that clients take in turn and that belongs to no task. */
const KINDS: Told = {
  figures: "그림",
  lessons: "수업",
  look: "들여다보기",
  uploads: "파일 업로드",
  files: "파일 열기",
  "large files": "큰 파일 처리",
  recordings: "녹음 열기",
  "long recordings": "긴 녹음 처리",
};

/** What a run reads. */
const READS: Told = { text: "글", pictures: "이미지", recordings: "녹음" };

const PARTS: Told = { encoder: "인코더", decoder: "디코더", cross: "교차 어텐션" };

/** What would cost less, by the work that costs too much. */
const LESS: Told = {
  search: "문장의 수나 길이, 빔 크기, max_length나 min_length 값을 줄이세요.",
  warnings: "문장의 수나 길이를 줄이거나, 확인이 필요한 곳(warnings)을 요청하지 마세요.",
  look: "글에서 한 문장만 고르거나 빔 크기를 줄이세요.",
  blanks: "빈칸의 수나 빈칸 하나의 서브워드 수, 후보의 수를 줄이세요.",
  reasons: "글의 수나 길이를 줄이거나 단어별 영향을 요청하지 마세요.",
  tags: "글의 수나 길이를 줄이세요.",
  files: "파일의 수를 줄이세요.",
  writing: "토큰 수를 줄이고, 결과에서 이어 쓰세요.",
};

/** What an HTTP status says where no code came with it: a proxy in between answered. */
const STATUS: Record<number, string> = {
  404: "요청한 것을 찾을 수 없습니다.",
  408: "요청이 제시간에 도착하지 않았습니다. 다시 시도하세요.",
  413: "요청이 너무 큽니다. 나누어 보내세요.",
  429: "지금은 요청이 너무 많습니다. 잠시 뒤 다시 시도하세요.",
  500: "서버에서 문제가 생겼습니다. 자세한 내용은 서버 로그에 있습니다.",
  502: "서버가 응답하지 않습니다. 잠시 뒤 다시 시도하세요.",
  503: "서버가 응답하지 않습니다. 잠시 뒤 다시 시도하세요.",
  504: "시간이 너무 오래 걸려 중단했습니다. 더 짧은 글을 보내세요.",
};

function written(values: Values): Told {
  const { views } = preferences;
  const one = (value: Values[string]): string => {
    if (typeof value === "number") return preferences.number(value, Number.isInteger(value) ? 0 : 1);
    return Array.isArray(value) ? value.join(", ") : value;
  };
  const told: Told = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, one(value)]));
  const { task, kind } = told;
  const view = views.find((one) => one.task.name === task || one.task.verb === kind);
  if (task) told.task = view?.task.korean ?? task;
  if (kind) told.kind = KINDS[kind] ?? views.map((one) => one.works?.[kind]).find(Boolean) ?? view?.task.korean ?? kind;
  return told;
}

/** In Korean by its code, then what there is in English alone: its problem, or where the code is not known the server's own sentence. */
export function errorKorean({ status, code, values, message }: ApiError): { told: string; english: string } {
  const sentence = Object.hasOwn(SENTENCES, code) ? SENTENCES[code] : undefined;
  if (sentence) return { told: sentence(written(values)), english: String(values.problem ?? "") };
  const told = code ? "" : (STATUS[status] ?? "");
  return { told, english: told ? "" : message };
}
