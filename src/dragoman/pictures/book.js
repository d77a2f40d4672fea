// Which language the captions are in: the reader's choice, at first the browser's.
"use strict";
(() => {
  const chooser = document.querySelector(".languages");
  const buttons = [...chooser.querySelectorAll("button")];
  const choose = (language) => {
    document.documentElement.lang = language;
    document.documentElement.dataset.language = language;
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.value === language));
  };
  for (const button of buttons) button.onclick = () => choose(button.value);
  chooser.hidden = false;
  const asked = new URLSearchParams(location.search).get("language") ?? navigator.language.slice(0, 2);
  choose(asked === "ko" ? "ko" : "en");
})();
