// What the server says against a request, in Korean: it answers in English.

/** Sentences of the server, with the numbers that stand in them. */
const SENTENCES: [RegExp, (...found: string[]) => string][] = [
  [/^The text has ([\d,]+) tokens; ([\d,]+) can be looked at\./, (has, most) => `글이 토큰 ${has}개입니다. 들여다볼 수 있는 것은 ${most}개까지이니 일부만 입력하세요.`],
  [/^The sentence has ([\d,]+) tokens; figures show ([\d,]+)\./, (has, most) => `문장이 토큰 ${has}개입니다. 그림에는 ${most}개까지 보입니다. 더 긴 문장은 들여다보기에서 볼 수 있습니다.`],
  [/^.*has ([\d,]+)(?: tokens)?, and ([\d,]+)(?: tokens)? are read at once/s, (has, most) => `문장이 토큰 ${has}개입니다. 한 번에 ${most}개까지 읽으니 짧게 나누어 입력하세요.`],
  [/^text: there is no blank in it\./, () => "빈칸이 없습니다. 채울 자리에 밑줄 세 개(___)를 쓰세요."],
  [/^The text has ([\d,]+) blanks; this server fills ([\d,]+) at once\./, (has, most) => `빈칸이 ${has}개입니다. 한 번에 ${most}개까지 채우니 글을 나누어 입력하세요.`],
  [/no token of the vocabulary can stand in a blank there/, () => "그 빈칸에 올 수 있는 토큰이 어휘에 없습니다."],
  [/^The request has ([\d,]+) characters of text; this server takes ([\d,]+) at once\./, (has, most) => `글이 ${has}자입니다. 한 번에 ${most}자까지 받으니 나누어 보내세요.`],
  [/^The request has ([\d,]+) sentences; this server takes ([\d,]+) at once\./, (has, most) => `문장이 ${has}개입니다. 한 번에 ${most}개까지 받으니 나누어 보내세요.`],
  [/^longest: ([\d,]+) tokens were asked for, and this server writes ([\d,]+) at once\./, (_, most) => `한 번에 토큰 ${most}개까지 씁니다. 더 적게 정하고, 결과를 보고 이어 쓰세요.`],
  [/^This server takes ([\d,]+) requests a minute/, (most) => `이 서버는 한 사람의 요청을 1분에 ${most}번까지 받습니다. 잠시 기다려 주세요.`],
  [/^You have ([\d,]+) requests under way; this server takes ([\d,]+) at a time/, (has, most) => `처리 중인 요청이 ${has}개입니다. 동시에 ${most}개까지 받으니 하나가 끝난 뒤 다시 시도하세요.`],
  [/^This took longer than ([\d.]+) seconds/, (seconds) => `${seconds}초가 넘어 중단했습니다. 더 짧은 글을 보내세요.`],
  [/^This API key is not known here\./, () => "이 서버가 모르는 API 키입니다. 서버 운영자에게 키를 요청하세요."],
];

/** What an HTTP status says, where the sentence is not known. */
const STATUS: Record<number, string> = {
  400: "서버가 이 요청을 받아들이지 않았습니다.",
  403: "권한이 없습니다. API 키를 확인하세요.",
  404: "요청한 것을 찾을 수 없습니다.",
  408: "요청이 제시간에 도착하지 않았습니다. 다시 시도하세요.",
  413: "요청이 너무 큽니다. 나누어 보내세요.",
  429: "지금은 요청이 너무 많습니다. 잠시 뒤 다시 시도하세요.",
  500: "서버에서 문제가 생겼습니다. 자세한 내용은 서버 로그에 있습니다.",
  502: "서버가 응답하지 않습니다. 잠시 뒤 다시 시도하세요.",
  503: "서버가 종료되는 중입니다. 잠시 뒤 다시 시도하세요.",
  504: "시간이 너무 오래 걸려 중단했습니다. 더 짧은 글을 보내세요.",
};

/** In Korean, and the server's own words where the Korean is only about their kind. */
export function errorKorean(status: number, message: string): { told: string; original: string } {
  for (const [pattern, told] of SENTENCES) {
    const found = pattern.exec(message);
    if (found) return { told: told(...found.slice(1)), original: "" };
  }
  const told = STATUS[status] ?? "";
  return { told, original: status === 400 || status === 404 || !told ? message : "" };
}
