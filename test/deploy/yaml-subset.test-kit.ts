/**
 * Reads the YAML that the files of `deploy/` are written in, and refuses any other: maps, lists, plain and quoted texts,
 * lists of quoted texts in brackets, and folded texts (`>-`). Every value is a text.
 */
export type Yaml = string | Yaml[] | { [key: string]: Yaml };

type Line = { indent: number; text: string; number: number };

export function parseYaml(text: string): Yaml {
  const lines = text.split("\n").flatMap((raw, i): Line[] => {
    const body = raw.trimStart();
    if (body === "" || body.startsWith("#")) return [];
    return [{ indent: raw.length - body.length, text: body.trimEnd(), number: i + 1 }];
  });
  const reader = new Reader(lines);
  const value = reader.block(0);
  reader.expectEnd();
  return value;
}

class Reader {
  readonly #lines: Line[];
  #at = 0;

  constructor(lines: Line[]) {
    this.#lines = lines;
  }

  expectEnd(): void {
    const line = this.#lines[this.#at];
    if (line !== undefined) throw problem(line, "stands nowhere");
  }

  block(indent: number): Yaml {
    const first = this.#lines[this.#at];
    if (first === undefined || first.indent !== indent) throw new Error(`nothing at an indent of ${indent}`);
    return first.text.startsWith("- ") ? this.#list(indent) : this.#map(indent);
  }

  #list(indent: number): Yaml[] {
    const items: Yaml[] = [];
    for (;;) {
      const line = this.#lines[this.#at];
      if (line === undefined || line.indent !== indent || !line.text.startsWith("- ")) return items;
      // What follows the dash is a block of its own, further in.
      line.text = line.text.slice(2);
      line.indent += 2;
      if (KEY.test(line.text)) items.push(this.#map(line.indent));
      else {
        items.push(scalar(line, line.text));
        this.#at++;
      }
    }
  }

  #map(indent: number): { [key: string]: Yaml } {
    const map: { [key: string]: Yaml } = {};
    for (;;) {
      const line = this.#lines[this.#at];
      if (line === undefined || line.indent !== indent || line.text.startsWith("- ")) return map;
      const [, key = "", rest = ""] = KEY.exec(line.text) ?? [];
      if (key === "" || key in map) throw problem(line, "has no key, or one twice");
      this.#at++;
      if (rest === ">-") map[key] = this.#folded(indent);
      else if (rest === "") map[key] = this.block(this.#nextIndent(line));
      else map[key] = scalar(line, rest);
    }
  }

  #nextIndent(line: Line): number {
    const next = this.#lines[this.#at];
    if (next === undefined || next.indent <= line.indent) throw problem(line, "has no value");
    return next.indent;
  }

  #folded(indent: number): string {
    const parts: string[] = [];
    for (let line = this.#lines[this.#at]; line !== undefined && line.indent > indent; line = this.#lines[++this.#at]) {
      parts.push(line.text);
    }
    if (parts.length === 0) throw new Error("an empty text");
    return parts.join(" ");
  }
}

const KEY = /^([A-Za-z_]+):(?: (.+))?$/;
const QUOTED = /^"[^"\\]*"$/;
/** What YAML takes for a text without quotes, whatever it holds. */
const PLAIN = /^[A-Za-z0-9/][^:#"'{}[\]]*$/;

function scalar(line: Line, text: string): Yaml {
  if (QUOTED.test(text)) return text.slice(1, -1);
  if (text.startsWith("[") && text.endsWith("]")) {
    return text
      .slice(1, -1)
      .split(/, (?=")/)
      .map((item) => (QUOTED.test(item) ? item.slice(1, -1) : fail(line, "has an item without quotes")));
  }
  // An anchor of a page: no comment, for no blank stands before it.
  if (PLAIN.test(text.replace(/(?<=\S)#(?=\S)/, ""))) return text;
  return fail(line, "needs quotes");
}

function fail(line: Line, what: string): never {
  throw problem(line, what);
}

function problem({ number, text }: Line, what: string): Error {
  return new Error(`line ${number} ${what}: ${text}`);
}
