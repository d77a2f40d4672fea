// The words of the tab Figures.

export const figuresEnglish = {
  figures: "Figures",
};

export const figuresKorean: typeof figuresEnglish = {
  figures: "그림",
};
