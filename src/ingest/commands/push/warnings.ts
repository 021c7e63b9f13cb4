import { visible } from "../../../client/text.ts";
import { lineIn, type Batch, type Origin } from "../../../io/rows/batcher.ts";

/** What an acknowledgement says did not fit. `firstLine` is that of the input. */
export type AckWarning = { code: string; field?: string; type?: string; count: number; firstLine: number };

/** The `warnings` of an acknowledgement of the batch; whatever has not their shape is left out. */
export function readWarnings(value: unknown, batch: Batch): AckWarning[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((entry: unknown) => {
    const { code, field, type, count, first_line: line } = (entry ?? {}) as Record<string, unknown>;
    if (typeof code !== "string" || typeof count !== "number" || typeof line !== "number") return [];
    const column = { ...(typeof field === "string" && { field }), ...(typeof type === "string" && { type }) };
    return [{ code, ...column, count, firstLine: lineIn(batch, line) }];
  });
}

/** The warnings of many requests, added up. */
export class PushWarnings {
  readonly #byKind = new Map<string, AckWarning>();

  /** Adds those of the next request. */
  add(warnings: readonly AckWarning[]): void {
    for (const warning of warnings) {
      const key = JSON.stringify([warning.code, warning.field, warning.type]);
      const known = this.#byKind.get(key);
      // Requests are sent in order, so the first that has one has the first line.
      if (known === undefined) this.#byKind.set(key, { ...warning });
      else known.count += warning.count;
    }
  }

  get all(): readonly AckWarning[] {
    return [...this.#byKind.values()];
  }

  /** One line for each, for a person. */
  textsFor({ shown, unit }: Origin): string[] {
    return this.all.map((warning) => `${describe(warning)}; the first is in ${unit} ${warning.firstLine} of ${shown}`);
  }
}

function describe({ code, field, type, count }: AckWarning): string {
  const number = count.toLocaleString("en-US");
  if (code === "at_unreadable") {
    return `${number} ${count === 1 ? "row has" : "rows have"} the time of arrival, for want of a time that can be read`;
  }
  if (code === "kept_in_props") {
    const values = count === 1 ? "value" : "values";
    const of = field === undefined ? "further fields" : `"${visible(field)}"`;
    const column = type === undefined ? "" : ` ${visible(type)}`;
    return `${number} ${values} of ${of} did not fit${column} and ${count === 1 ? "is" : "are"} in props`;
  }
  const which = field === undefined ? "" : `, field "${visible(field)}"`;
  return `${visible(code)}${which}: ${number}`;
}
