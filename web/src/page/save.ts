// Files that the page gives to a person.

const KINDS: Record<string, string> = { svg: "image/svg+xml", csv: "text/csv" };

export function save(name: string, content: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type: KINDS[name.split(".").pop() ?? ""] ?? "text/plain" }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
