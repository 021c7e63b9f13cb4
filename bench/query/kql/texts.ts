import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

/** Queries in KQL out of folders of files: one a file, in fences of Markdown, or under `query:` of YAML. */
export async function textsIn(folders: readonly string[]): Promise<string[]> {
  const texts = new Set<string>();
  for (const folder of folders) {
    const files = await readdir(folder, { recursive: true, withFileTypes: true });
    const paths = files.filter((file) => file.isFile()).map((file) => join(file.parentPath, file.name));
    for (const path of paths.toSorted()) {
      const from = SOURCES.find(({ name }) => name.test(path));
      if (from === undefined) continue;
      for (const text of from.texts(await readFile(path, "utf8"))) texts.add(text.trim());
    }
  }
  return [...texts].filter((text) => text.length > 20 && text.length < 20_000 && /\|/.test(text));
}

const SOURCES: readonly { name: RegExp; texts: (content: string) => string[] }[] = [
  { name: /\.(kql|csl|kusto)$/i, texts: (content) => [withoutMark(content)] },
  { name: /\.(md|txt)$/i, texts: fenced },
  { name: /\.ya?ml$/i, texts: (content) => [...content.matchAll(UNDER_QUERY)].map(([, body = ""]) => outdented(body)) },
];

const UNDER_QUERY = /^query: *[|>][-+]?\d* *\n((?:(?: {2,}.*|[ \t]*)\n)+)/gm;

/** Fences of other languages are matched too: where one ends, none begins. */
function fenced(content: string): string[] {
  const fences = content.matchAll(/^```([^\s`]*)[^\n]*\n([\s\S]*?)^[ \t]*```/gm);
  return [...fences].flatMap(([, language = "", body = ""]) => (LANGUAGES.has(language.toLowerCase()) ? [body] : []));
}

const LANGUAGES: ReadonlySet<string> = new Set(["kql", "kusto", "csl", ""]);

function withoutMark(content: string): string {
  return content.replace(/^\uFEFF/, "");
}

function outdented(body: string): string {
  const lines = body.split("\n");
  const indents = lines.filter((line) => line.trim() !== "").map((line) => line.search(/\S/));
  const least = Math.min(...indents);
  return lines.map((line) => line.slice(least)).join("\n");
}
