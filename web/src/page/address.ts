// The address: which view is open, and all that a person made there.
//
//   #translate?v=1&run=demo&text=Hello      everything stands behind the #, so no server ever sees it
//   #look?v=1&run=demo&text=Hello&at=cross.1.2&hide=3
//   #figures?v=1&figure=position-sinusoidal&length=64
//
// It has at most MOST characters: a longer text is left out, and with it what belongs to its words.
// Of the views that are not open the browser's history keeps the same; it goes into no link.

/** Of what is written behind the view. An address of another version tells its run and text alone. */
const VERSION = "1";
const MOST = 2000;

export interface Place {
  /** The name of a view; what is read may be the name of none. */
  view: string;
  run: string;
  text: string;
  figure: string;
  /** What a view keeps of its own. */
  more: Record<string, string>;
}

export function read(hash: string): Place {
  const [view = "", query = ""] = hash.replace(/^#/, "").split(/\?(.*)/s);
  const values = Object.fromEntries(new URLSearchParams(query));
  const { v = VERSION, run = "", text = "", figure = "", ...more } = values;
  return { view, run, text, figure, more: v === VERSION ? more : {} };
}

export type Given = Partial<Place> & { view: string };

function whole({ view, run, figure, text, more }: Given): string {
  const values = new URLSearchParams({ v: VERSION });
  for (const [name, value] of Object.entries({ run, figure, text, ...more })) if (value) values.set(name, value);
  return `#${view}?${values}`;
}

/** Whether an address has room for all of it. */
export function fits(place: Given): boolean {
  return whole(place).length <= MOST;
}

export function write(place: Given): string {
  return fits(place) ? whole(place) : whole({ ...place, text: "", more: {} });
}

/** What the history keeps of each view, however long. */
type Kept = Partial<Record<string, string>>;

export function kept(): Kept {
  const state: unknown = history.state;
  return state && typeof state === "object" ? (state as Kept) : {};
}

/** Put a place into the address: over the one that stands there, or as a step that Back undoes. */
export function put(place: Given, isStep = false): void {
  const hash = write(place);
  const state = { ...kept(), [place.view]: whole(place) };
  if (isStep) history.pushState(state, "", hash);
  else if (hash !== location.hash || kept()[place.view] !== state[place.view]) history.replaceState(state, "", hash);
}
