// Files that the page gives to a person.

const KINDS: Record<string, string> = { svg: "image/svg+xml", csv: "text/csv" };

export function save(name: string, content: string): void {
  const address = URL.createObjectURL(new Blob([content], { type: KINDS[name.split(".").pop() ?? ""] ?? "text/plain" }));
  download(name, address);
  URL.revokeObjectURL(address);
}

/** A PNG in base64. */
export function savePicture(name: string, png: string): void {
  download(name, `data:image/png;base64,${png}`);
}

function download(name: string, href: string): void {
  Object.assign(document.createElement("a"), { href, download: name }).click();
}
