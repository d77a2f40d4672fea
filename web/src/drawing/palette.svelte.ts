// The colours of the page as numbers, for what is drawn on canvas; they follow the theme.

import { preferences } from "../page/preferences.svelte";

type Rgb = readonly [number, number, number];

/** A colour as it is written for the light and the dark page: light-dark(#fcfbf8, #15171b). */
function parse(value: string, isDark: boolean): Rgb {
  const both = value.match(/#[\da-f]+/gi) ?? [];
  // The build writes #ffffff as #fff.
  const given = (both[isDark ? both.length - 1 : 0] ?? "#000").slice(1);
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
    void preferences.language; // each has its own font
    const { theme } = preferences;
    const isDark = theme === "auto" ? this.#dark : theme === "dark";
    const style = getComputedStyle(document.documentElement);
    const of = (name: string): Rgb => parse(style.getPropertyValue(`--${name}`), isDark);
    return {
      raised: of("raised"),
      ink: of("ink"),
      muted: of("muted"),
      accent: of("accent"),
      /** Above zero, and below. */
      series: [of("series-0"), of("series-1")] as const,
      font: style.getPropertyValue("--font"),
    };
  });
}

export const palette = new Palette();

export function css([r, g, b]: Rgb, alpha = 1): string {
  return `rgb(${r} ${g} ${b} / ${alpha})`;
}

/** The colour of each name, in turn: a name keeps its own while others come. White or black letters stand on all. */
export class Colours {
  readonly #known = new Map<string, number>();

  of(name: string): string {
    const number = this.#known.get(name) ?? this.#known.size;
    this.#known.set(name, number);
    return `var(--series-${number % 8})`;
  }
}
