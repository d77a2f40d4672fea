// What a person set for this page, kept in this browser.

import type { RunInfo } from "$openapi";
import { axis, number, percent, rewritten, signed, significant, unit } from "./format";
import type { TaskView } from "./view";
import { languages, type Texts, type UiLanguage, type Words } from "./words";
import { runKorean } from "../run/words";

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

class Preferences {
  language = $state<UiLanguage>(firstLanguage());
  theme = $state<Theme>(firstTheme());

  get words(): Words {
    return languages[this.language];
  }

  /** The texts that views share, and those of one view. */
  with<Own>(texts: Texts<Own>): Words & Own {
    return { ...this.words, ...texts[this.language] };
  }

  /** The views of tasks; the page sets them from its table. */
  views: TaskView[] = [];

  /** The view that is for a run. */
  viewOf(run: RunInfo | null): TaskView | undefined {
    return run ? this.views.find((one) => one.takes(run)) : undefined;
  }

  /** With what the tab Look calls otherwise for a run. */
  wordsOf(run: RunInfo | null): Words {
    return { ...this.words, ...this.viewOf(run)?.look?.texts?.[this.language] };
  }

  setLanguage(language: UiLanguage): void {
    this.language = language;
    localStorage.setItem(LANGUAGE, language);
  }

  setTheme(theme: Theme): void {
    this.theme = theme;
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
    return this.language === "ko" ? runKorean(name, this.views) : name;
  }

  number(value: number, digits = 0): string {
    return number(value, this.language, digits);
  }

  /** With a sign before what is above zero too. */
  signed(value: number, digits = 0): string {
    return signed(value, this.language, digits);
  }

  /** A number that the server wrote out, as the page writes numbers; other text stays as it is. */
  rewritten(text: string): string {
    return rewritten(text, this.language);
  }

  significant(value: number): string {
    return significant(value, this.language);
  }

  axis(values: number[]): string[] {
    return axis(values, this.language);
  }

  unit(text: string): string {
    return unit(text, this.language);
  }

  /** As many digits behind the point as show the first two of `greatest`, or `least`. */
  enough(greatest: number, least: number): number {
    if (!greatest) return least;
    return Math.max(least, Math.min(9, 1 - Math.floor(Math.log10(greatest))));
  }

  percent(share: number, digits?: number): string {
    return percent(share, this.language, digits);
  }
}

export const preferences = new Preferences();
