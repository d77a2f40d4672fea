// The address: which view is open, and a text that someone shares.
//
//   #translate?run=demo&text=Hello     everything stands behind the #, so no server ever sees it
//   #look?run=demo&text=Hello
//   #figures?figure=position-sinusoidal

export const views = ["translate", "look", "figures", "run"] as const;
export type View = (typeof views)[number];

export interface Place {
  view: View;
  run: string;
  source: string;
  text: string;
  figure: string;
}

export function read(hash: string): Place {
  const [view, query = ""] = hash.replace(/^#/, "").split(/\?(.*)/s);
  const values = new URLSearchParams(query);
  return {
    view: views.find((name) => name === view) ?? "translate",
    run: values.get("run") ?? "",
    source: values.get("source") ?? "",
    text: values.get("text") ?? "",
    figure: values.get("figure") ?? "",
  };
}

export function write(place: Partial<Place> & { view: View }): string {
  const values = new URLSearchParams();
  if (place.run) values.set("run", place.run);
  if (place.source) values.set("source", place.source);
  if (place.figure) values.set("figure", place.figure);
  if (place.text) values.set("text", place.text);
  const query = values.toString();
  return `#${place.view}${query ? `?${query}` : ""}`;
}
