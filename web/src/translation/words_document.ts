// The words of documents, in both languages.

export const documentEnglish = {
  document: "Translate a document",
  document_hint: "Drop a file here: Word, PowerPoint, Excel, OpenDocument, HTML, Markdown, PO, XLIFF, subtitles and more. All but its text stays as it is.",
  document_drop: "Drop the file to translate it",
  document_working: (name: string) => `Translating ${name}`,
  document_progress: (done: string, of: string) => `${done} of ${of} texts`,
  document_done: (name: string) => `${name} is translated.`,
  document_download: "Download",
  document_private: "It waits for ten minutes and is gone after the download.",
  document_doubts: "Look this over before you use the translation:",
  cancel: "Cancel",
};

export type DocumentWords = typeof documentEnglish;

export const documentKorean: DocumentWords = {
  document: "문서 번역",
  document_hint: "파일을 여기에 끌어다 놓으세요: 워드, 파워포인트, 엑셀, 오픈도큐먼트, HTML, 마크다운, PO, XLIFF, 자막 등. 글 외에는 모두 그대로 둡니다.",
  document_drop: "파일을 놓으면 번역합니다",
  document_working: (name) => `번역 중: ${name}`,
  document_progress: (done, of) => `글 ${of}개 중 ${done}개`,
  document_done: (name) => `번역이 끝났습니다: ${name}`,
  document_download: "내려받기",
  document_private: "10분 동안 보관하며, 내려받으면 지워집니다.",
  document_doubts: "번역을 쓰기 전에 확인하세요(영어로 표시됩니다).",
  cancel: "취소",
};
