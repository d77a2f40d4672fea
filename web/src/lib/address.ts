// The address: which view is open, and a text that someone shares.
//
//   #translate?run=demo&text=Hello     everything stands behind the #, so no server ever sees it

export type View = "translate" | "run";

export interface Place {
  view: View;
  run: string;
  source: string;
  text: string;
}

export function read(hash: string): Place {
  const [view, query = ""] = hash.replace(/^#/, "").split(/\?(.*)/s);
  const values = new URLSearchParams(query);
  return {
    view: view === "run" ? "run" : "translate",
    run: values.get("run") ?? "",
    source: values.get("source") ?? "",
    text: values.get("text") ?? "",
  };
}

export function write(place: Partial<Place> & { view: View }): string {
  const values = new URLSearchParams();
  if (place.run) values.set("run", place.run);
  if (place.source) values.set("source", place.source);
  if (place.text) values.set("text", place.text);
  const query = values.toString();
  return `#${place.view}${query ? `?${query}` : ""}`;
}
