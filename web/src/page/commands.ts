// What does in a shell what the page does.

import { apiKey } from "./api";

/** A text as one word of a shell. */
export function quoted(text: string): string {
  return /^[\w./=:-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** The request that answers a view, with curl; without a body it is a GET. */
export function curl(path: string, body?: object): string {
  const address = new URL(path, document.baseURI);
  address.hash = "";
  const parts = ["curl", quoted(address.href)];
  if (apiKey.get()) parts.push("-H 'Authorization: Bearer KEY'");
  if (body) parts.push("-H 'Content-Type: application/json'", `-d ${quoted(JSON.stringify(body))}`);
  return parts.join(" ");
}

/** The same with a form that sends a file. */
export function curlFile(path: string, name: string, fields: Record<string, string>): string {
  const parts = Object.entries({ ...fields, file: `@${name}` }).map(([field, value]) => `-F ${quoted(`${field}=${value}`)}`);
  return [curl(path), ...parts].join(" ");
}

/** A verb of the program on a run, where runs lie as the program puts them; what is empty is left out. */
export function dragoman(verb: string, run: string, ...rest: string[]): string {
  return ["dragoman", verb, `runs/${run}`, ...rest.filter(Boolean)].map(quoted).join(" ");
}

/** An option of a verb with its value; nothing where it is as it would be anyway. */
export function option(name: string, value: string | number, usual?: string | number): string[] {
  return value === usual ? [] : [`--${name}`, String(value)];
}
