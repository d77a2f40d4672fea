// The colours of the page as numbers, for what is drawn on canvas; they follow the theme.

import { preferences } from "../page/preferences.svelte";

export type Rgb = readonly [number, number, number];

function parse(value: string): Rgb {
  const given = value.trim().replace("#", "");
  // The build writes #ffffff as #fff.
  const hex = given.length === 3 ? [...given].map((digit) => digit + digit).join("") : given;
  return [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16)) as unknown as Rgb;
}

class Palette {
  #dark = $state(matchMedia("(prefers-color-scheme: dark)").matches);

  constructor() {
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => {
      this.#dark = event.matches;
    });
  }

  /** Read anew whenever the theme changes: reading it in an effect is enough to follow. */
  colours = $derived.by(() => {
    const { theme, language } = preferences;
    // App.svelte puts both on the page in an effect of its own: set them here first.
    document.documentElement.dataset.theme = theme;
    document.documentElement.lang = language;
    void this.#dark;
    const style = getComputedStyle(document.documentElement);
    const of = (name: string): Rgb => parse(style.getPropertyValue(`--${name}`));
    return {
      paper: of("paper"),
      raised: of("raised"),
      ink: of("ink"),
      muted: of("muted"),
      faint: of("faint"),
      rule: of("rule"),
      accent: of("accent"),
      doubt: of("doubt"),
      series: [of("series-0"), of("series-1"), of("series-2"), of("series-3"), of("series-4"), of("series-5"), of("series-6"), of("series-7")] as const,
      font: style.getPropertyValue("--font"),
    };
  });
}

export const palette = new Palette();

export function css([r, g, b]: Rgb, alpha = 1): string {
  return `rgb(${r} ${g} ${b} / ${alpha})`;
}
