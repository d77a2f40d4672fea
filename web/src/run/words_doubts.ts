// What looks wrong with a text (data/checks/corpus_checks.py), in Korean: runs keep it in English.
// tests/data/checks/test_corpus_checks.py holds that each sentence of the program is here.

const SIDES: Record<string, string> = { source: "원문", target: "번역문" };

const side = (name = "") => SIDES[name] ?? name;

/** English name of a language -> its code; made when first asked for. */
let codes: Map<string, string> | undefined;

function language(english = ""): string {
  if (!codes) {
    codes = new Map();
    const names = new Intl.DisplayNames(["en"], { type: "language", fallback: "none" });
    const letters = [..."abcdefghijklmnopqrstuvwxyz"];
    for (const code of letters.flatMap((first) => letters.map((second) => first + second))) {
      const name = names.of(code);
      if (name && !codes.has(name)) codes.set(name, code);
    }
  }
  const code = codes.get(english);
  return (code && new Intl.DisplayNames(["ko"], { type: "language" }).of(code)) ?? english;
}

const DOUBTS: [RegExp, (...found: string[]) => string][] = [
  [
    /^source and target are the same text in ([\d,]+) of ([\d,]+) lines looked at$/,
    (part, all) => `살펴본 ${all}줄 가운데 ${part}줄에서 원문과 번역문이 같습니다`,
  ],
  [
    /^the same file is given twice, as source and as target$/,
    () => "같은 파일을 원문과 번역문으로 두 번 지정했습니다",
  ],
  [
    /^the (\w+) side is not UTF-8: ([\d,]+) of ([\d,]+) lines looked at cannot be read and are dropped(?:\. They (?:are probably|read well as) ([\w-]+)(?:: (.+)|(; the other lines are UTF-8, so convert only these)))?$/,
    (name, part, all, encoding, command, only) =>
      `${side(name)}의 인코딩이 UTF-8이 아닙니다. 살펴본 ${all}줄 가운데 ${part}줄은 읽을 수 없어 제외합니다` +
      (encoding ? `. 실제 인코딩은 ${encoding}인 것 같습니다` : "") +
      (command ? `: ${command}` : "") +
      (only ? ". 나머지 줄은 UTF-8이므로 이 줄만 변환하세요" : ""),
  ],
  [
    /^the (\w+) side was encoded twice in ([\d,]+) of ([\d,]+) lines looked at, which should be$/,
    (name, part, all) =>
      `${side(name)}에서 살펴본 ${all}줄 가운데 ${part}줄이 두 번 인코딩되었습니다. 원래는 다음과 같아야 합니다`,
  ],
  [/^line 1 is probably a header: take it out$/, () => "1번째 줄은 머리글인 것 같습니다. 빼세요"],
  [
    /^the (\w+) side is cut (?:(by SentencePiece)|(into parts of words)|into tokens)[^:]*, in ([\d,]+) of ([\d,]+) lines looked at; undo it(?:: | with )(.+)$/,
    (name, pieces, parts, part, all, command) =>
      `${side(name)}에서 살펴본 ${all}줄 가운데 ${part}줄이 ${pieces ? "SentencePiece 서브워드로" : parts ? "서브워드로" : "토큰으로"} 나뉘어 있습니다. 되돌리세요: ${command}`,
  ],
  [
    /^these are subtitles: ([\d,]+) of ([\d,]+) lines looked at are times\. Lines of \.srt and \.vtt files are no sentences and rarely translate each other: take the text out and align it first$/,
    (part, all) =>
      `자막 파일입니다. 살펴본 ${all}줄 가운데 ${part}줄이 시각 표시입니다. .srt와 .vtt의 줄은 문장이 아니고 서로 번역인 경우가 드뭅니다. 먼저 글만 뽑아 문장의 짝을 맞추세요`,
  ],
  [
    /^the (\w+) side has ([\d,]+) different values in ([\d,]+) lines looked at, such as (.+): these look like labels, not like translations\. To learn which label a text has: --task classification$/,
    (name, values, all, such) =>
      `${side(name)}에서 살펴본 ${all}줄에 서로 다른 값이 ${values}개뿐입니다(예: ${such}). 번역이 아니라 레이블로 보입니다. 글의 레이블을 배우게 하려면 --task classification 옵션을 쓰세요`,
  ],
  [
    /^the (\w+) side has no letter in ([\d,]+) of ([\d,]+) lines looked at: is it the right column\?$/,
    (name, part, all) =>
      `${side(name)}에서 살펴본 ${all}줄 가운데 ${part}줄에 글자가 없습니다. 열을 바르게 골랐는지 확인하세요`,
  ],
  [
    /^the sides are in the wrong order: the source should be (.+) and is (.+), the target the other way round$/,
    (wanted, found) =>
      `원문과 번역문의 순서가 바뀌었습니다. 원문은 ${language(wanted)}여야 하는데 ${language(found)}이고, 번역문은 그 반대입니다`,
  ],
  [
    /^the (\w+) side should be (.+) and reads as (.+)$/,
    (name, wanted, found) =>
      `${side(name)}의 언어는 ${language(wanted)}여야 하는데 ${(found ?? "").split(" or ").map(language).join(" 또는 ")}인 것 같습니다`,
  ],
  [/^both sides seem to be in one language$/, () => "원문과 번역문이 같은 언어인 것 같습니다"],
  [
    /^about ([\d.]+)% of the pairs have source and target exchanged$/,
    (share) => `문장 쌍의 약 ${share}%에서 원문과 번역문이 뒤바뀌었습니다`,
  ],
  [
    /^the sides are shifted against each other (?:from beginning to end|up to about line ([\d,]+)|from about line ([\d,]+) on(?:, to ([\d,]+))?): the translation of source line n is target line n ([+-]\d+)\. Look for a line that only one side has$/,
    (until, from, to, by) =>
      `원문과 번역문의 줄이 ` +
      (until ? `약 ${until}번째 줄까지` : from ? `약 ${from}번째 줄부터${to ? ` ${to}번째 줄까지` : ""}` : "처음부터 끝까지") +
      ` 어긋나 있습니다. 원문 n번째 줄의 번역은 번역문 n${by}번째 줄입니다. 한쪽에만 있는 줄을 찾아보세요`,
  ],
  [
    /^about (\d+)% of the pairs do not seem to translate each other$/,
    (share) => `문장 쌍의 약 ${share}%가 서로 번역이 아닌 것 같습니다`,
  ],
  [
    /^the two sides do not seem to translate each other line by line$/,
    () => "원문과 번역문의 줄들이 서로 번역이 아닌 것 같습니다",
  ],
];

/** In Korean, or null where it is no doubt of the program. */
export function doubtKorean(text: string): string | null {
  if (/^line \d+: ['"]/.test(text)) return text.replace(/(^|; |\| )line (\d+): (?=['"])/g, "$1$2번째 줄: ");
  for (const [pattern, told] of DOUBTS) {
    const found = pattern.exec(text);
    if (found) return told(...found.slice(1));
  }
  return null;
}
