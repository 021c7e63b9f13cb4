/** What an acknowledgement says did not fit; `firstLine` counts from the start of the request. */
export type AckWarning = { code: string; column?: string; count: number; firstLine: number };

/** The `warnings` of an acknowledgement, as any version of the server has them; none for anything else. */
export function readWarnings(value: unknown): AckWarning[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((entry: unknown) => {
    const { code, column, count, first_line: firstLine } = (entry ?? {}) as Record<string, unknown>;
    if (typeof code !== "string" || typeof count !== "number" || typeof firstLine !== "number") return [];
    return [{ code, ...(typeof column === "string" && { column }), count, firstLine }];
  });
}

/** The warnings of many requests, added up: lines are those of the whole input. */
export class PushWarnings {
  readonly #byKind = new Map<string, AckWarning>();

  /** Adds those of a request that begins with that line of the input. */
  add(warnings: readonly AckWarning[], firstLine: number): void {
    for (const { firstLine: line, ...warning } of warnings) {
      const key = JSON.stringify([warning.code, warning.column]);
      const known = this.#byKind.get(key);
      if (known !== undefined) known.count += warning.count;
      // Requests are sent in order, so the first that has one has the first line.
      else this.#byKind.set(key, { ...warning, firstLine: firstLine + line - 1 });
    }
  }

  get all(): readonly AckWarning[] {
    return [...this.#byKind.values()];
  }

  /** One line for each, for a person. */
  get texts(): string[] {
    return this.all.map((warning) => `${describe(warning)}; the first is on line ${warning.firstLine} of the input`);
  }
}

function describe({ code, column, count }: AckWarning): string {
  const number = count.toLocaleString("en-US");
  if (code === "at_unreadable") {
    return `${number} ${count === 1 ? "row has" : "rows have"} the time of arrival: what was to be the time cannot be read`;
  }
  if (code === "value_in_props") {
    const where = column === undefined ? "further columns" : `column ${JSON.stringify(column)}`;
    return `${number} ${count === 1 ? "value does" : "values do"} not fit ${where}, and went to props`;
  }
  return column === undefined ? `${code}: ${number}` : `${code}, column ${JSON.stringify(column)}: ${number}`;
}
