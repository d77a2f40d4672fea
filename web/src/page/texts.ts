// Texts in both languages of the page, side by side.

export type UiLanguage = "en" | "ko";
/** A text, or an object of texts, in every language. */
export type Texts<Own> = Record<UiLanguage, Own>;

type Text = string | readonly string[] | ((...values: never[]) => string);
/** By name, in English and in Korean. What stands in braces is given in the order of the English text. */
export interface Table {
  readonly [name: string]: readonly [Text, Text] | Table;
}

export type Said<Rows> = {
  -readonly [Name in keyof Rows]: Rows[Name] extends readonly [infer English, unknown]
    ? English extends `${string}{${string}}${string}`
      ? (...values: string[]) => string
      : English extends string
        ? string
        : English extends readonly string[]
          ? readonly string[]
          : English
    : Said<Rows[Name]> & Record<string, string>;
};

function said(table: Table, place: 0 | 1): Record<string, unknown> {
  const filled = ([english, korean]: readonly [Text, Text]): unknown => {
    const text = place ? korean : english;
    const names = typeof english === "string" ? [...new Set(english.match(/\{\w+\}/g))] : [];
    if (typeof text !== "string" || !names.length) return text;
    return (...values: string[]) => text.replace(/\{\w+\}/g, (name) => values[names.indexOf(name)] ?? "");
  };
  const isPair = (row: readonly [Text, Text] | Table): row is readonly [Text, Text] => Array.isArray(row);
  return Object.fromEntries(Object.entries(table).map(([name, row]) => [name, isPair(row) ? filled(row) : said(row, place)]));
}

/** A table as the texts of each language; a text with braces is a function of what stands in them. */
export function both<const Rows extends Table>(table: Rows): Texts<Said<Rows>> {
  return { en: said(table, 0), ko: said(table, 1) } as Texts<Said<Rows>>;
}
