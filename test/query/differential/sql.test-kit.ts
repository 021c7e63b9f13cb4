/**
 * One query in two spellings: ours, and what means the same in plain DuckDB. They differ where this engine does on
 * purpose: a bare `at`, time travel, and instants (a `timestamp` column compares with TIMESTAMPTZ and keeps its
 * nanoseconds through arithmetic; plain DuckDB has to be told).
 */
export type Sql = { ours: string; plain: string };

/** The same text on both sides. */
export function both(text: string): Sql {
  return { ours: text, plain: text };
}

/** A template of pairs; texts and numbers stand for themselves on both sides. */
export function sql(parts: TemplateStringsArray, ...values: (Sql | string | number)[]): Sql {
  const side = (name: keyof Sql): string =>
    String.raw({ raw: parts }, ...values.map((value) => (typeof value === "object" ? value[name] : value)));
  return { ours: side("ours"), plain: side("plain") };
}

export function join(items: readonly Sql[], separator = ", "): Sql {
  return {
    ours: items.map((item) => item.ours).join(separator),
    plain: items.map((item) => item.plain).join(separator),
  };
}

/** A string as SQL writes it; NUL cannot stand in a literal. */
export function textLiteral(text: string): string {
  const parts = text.split("\0").map((part) => `'${part.replaceAll("'", "''")}'`);
  return parts.length === 1 ? (parts[0] ?? "''") : `(${parts.join(" || chr(0) || ")})`;
}
