// What a person set for this page, kept in this browser.

import type { RunInfo } from "$openapi";
import { chosen } from "./chosen.svelte";
import { Format } from "./format";
import type { TaskView } from "./view";
import { both, type Said, type Table } from "./texts";
import { languages, type UiLanguage, type Words } from "./words";

export type Theme = "auto" | "light" | "dark";

const LANGUAGE = "dragoman.language";
const THEME = "dragoman.theme";

function firstLanguage(): UiLanguage {
  const kept = localStorage.getItem(LANGUAGE);
  if (kept === "en" || kept === "ko") return kept;
  return navigator.language.toLowerCase().startsWith("ko") ? "ko" : "en";
}

function firstTheme(): Theme {
  const kept = localStorage.getItem(THEME);
  return kept === "light" || kept === "dark" ? kept : "auto";
}

class Preferences extends Format {
  language = $state<UiLanguage>(firstLanguage());
  theme = $state<Theme>(firstTheme());
  /** What the server says, in Korean: fetched when the page is first in Korean. */
  korean = $state.raw<typeof import("./korean") | null>(null);

  constructor() {
    super();
    void this.#show();
  }

  /** Put both on the page: its style sheets know them from there. */
  async #show(): Promise<void> {
    document.documentElement.lang = this.language;
    document.documentElement.dataset.theme = this.theme;
    if (this.language === "ko") this.korean ??= await import("./korean");
  }

  get words(): Words {
    return languages[this.language];
  }

  /** The views of tasks; the page sets them from its table. */
  views: TaskView[] = [];

  /** The view that is for a run. */
  viewOf(run: RunInfo | null): TaskView | undefined {
    return run ? this.views.find((one) => one.takes(run)) : undefined;
  }

  setLanguage(language: UiLanguage): void {
    this.language = language;
    void this.#show();
    localStorage.setItem(LANGUAGE, language);
  }

  setTheme(theme: Theme): void {
    this.theme = theme;
    void this.#show();
    localStorage.setItem(THEME, theme);
  }

  /** The name of a language in the language of the page. */
  languageName(code: string): string {
    if (code === "und") return this.words.language_unknown; // a browser calls it "root"
    try {
      return new Intl.DisplayNames([this.language], { type: "language" }).of(code) ?? code;
    } catch {
      return code;
    }
  }

  /** What the server says of a run in English, in the language of the page as far as it has words. */
  named(name: string): string {
    return this.language === "ko" ? (this.korean?.runKorean(name) ?? name) : name;
  }
}

export const preferences = new Preferences();

/** The texts that views share, with others before them, as they are when one is read. */
function after<Own>(others: () => Own | undefined): Words & Own {
  const get = (_: unknown, name: string): unknown => Reflect.get(others() ?? {}, name) ?? Reflect.get(preferences.words, name);
  return new Proxy<object>({}, { get }) as Words & Own;
}

/** The texts that views share, with those of a table. */
export function wordsWith<const Rows extends Table>(table: Rows): Words & Said<Rows> {
  const own = both(table);
  return after(() => own[preferences.language]);
}

/** The texts that views share. */
export const words = wordsWith({});

/** The same, with what is called otherwise for the run that is chosen, where that is looked into. */
export const runWords: Words = after(() => preferences.viewOf(chosen.run)?.look?.texts?.[preferences.language]);
