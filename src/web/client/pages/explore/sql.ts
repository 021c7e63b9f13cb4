/**
 * SQL with values in it. A name is always quoted, and a value is never part of the text that is sent: `prepared` gives
 * parameters for it, `written` literals, for people and for the filter of a live tail, which takes no parameters.
 */
export type Sql = { readonly parts: readonly (string | { readonly value: string })[] };

/** Pieces of SQL around others: strings put in are values, so what is no value must be `Sql`. */
export function sql(texts: TemplateStringsArray, ...inner: readonly (Sql | string)[]): Sql {
  const parts = texts.flatMap((text, i) => {
    const one = inner[i];
    return one === undefined ? [text] : [text, ...(typeof one === "string" ? [{ value: one }] : one.parts)];
  });
  return { parts };
}

/** Text of ours, or SQL that the user wrote as such. */
export function raw(text: string): Sql {
  return { parts: [text] };
}

export function name(text: string): Sql {
  return raw(`"${text.replaceAll('"', '""')}"`);
}

export function integer(value: number): Sql {
  if (!Number.isSafeInteger(value)) throw new RangeError(`${value} is no integer`);
  return raw(String(value));
}

export function joined(all: readonly Sql[], between: string): Sql {
  return { parts: all.flatMap(({ parts }, i) => (i === 0 ? parts : [between, ...parts])) };
}

/** The text with a parameter for each value; the same value is one parameter. */
export function prepared({ parts }: Sql): { query: string; params: Record<string, string> } {
  const names = new Map<string, string>();
  const texts = parts.map((part) => {
    if (typeof part === "string") return part;
    const known = names.get(part.value) ?? `p${names.size + 1}`;
    names.set(part.value, known);
    return `$${known}`;
  });
  return { query: texts.join(""), params: Object.fromEntries([...names].map(([value, key]) => [key, value])) };
}

/** The text with literals. */
export function written({ parts }: Sql): string {
  return parts.map((part) => (typeof part === "string" ? part : `'${part.value.replaceAll("'", "''")}'`)).join("");
}
