import { EngineError } from "../core/errors.ts";
import { foldName } from "../core/names.ts";
import type { ColumnStats } from "../format/types.ts";
import type { ColumnRecord } from "./catalog.ts";
import { decodeStatsAt, ListParser, pickStats, type EncodedStats } from "./stats-encoding.ts";

/**
 * Turns stored lists of column ids and statistics into what they say. Extents in a row mostly have the same columns:
 * equal lists become one array.
 */
export class StatsDecoder {
  readonly #names: ReadonlyMap<number, string>;
  readonly #wanted: ReadonlySet<number> | undefined;
  readonly #ids = new ListParser<number>();
  readonly #lists = new Map<string, readonly string[]>();
  #layout: Layout | undefined;

  /** `columns` are all of the table; `wanted` those whose statistics are asked for, all when absent. */
  constructor(columns: readonly ColumnRecord[], wanted?: readonly ColumnRecord[]) {
    this.#names = new Map(columns.map(({ id, name }) => [id, name]));
    this.#wanted = wanted === undefined ? undefined : new Set(wanted.map(({ id }) => id));
  }

  /** The names of the columns in a list of ids. */
  columnsIn(columnIds: string): readonly string[] {
    const known = this.#lists.get(columnIds);
    if (known !== undefined) return known;
    const names = this.#ids.parse(columnIds).map((id) => this.#nameOf(id));
    this.#lists.set(columnIds, names);
    return names;
  }

  statsIn(columnIds: string, values: string): ColumnStats[] {
    const { names, positions } = this.#layoutOf(columnIds);
    return decodeStatsAt(names, positions, values);
  }

  /** The same as text, for another thread to decode: see `decodeStats`. */
  encodedIn(columnIds: string, values: string): EncodedStats {
    const layout = this.#layoutOf(columnIds);
    layout.encodedNames ??= JSON.stringify(layout.names);
    const picked = this.#wanted === undefined ? values : pickStats(values, layout.positions);
    return { names: layout.encodedNames, values: picked };
  }

  #layoutOf(columnIds: string): Layout {
    const ids = this.#ids.parse(columnIds);
    if (this.#layout?.ids === ids) return this.#layout;
    const positions = [...ids.keys()].filter((i) => this.#wanted?.has(ids[i] ?? 0) ?? true);
    this.#layout = { ids, positions, names: positions.map((i) => this.#nameOf(ids[i])) };
    return this.#layout;
  }

  #nameOf(id: number | undefined): string {
    const name = id === undefined ? undefined : this.#names.get(id);
    if (name === undefined) throw new Error(`an extent has statistics for unknown column id ${id}`);
    return name;
  }
}

/** Reads the statistics of an extent. Throws `unavailable`, which names the extent, for those that cannot be read. */
export function readStatsOf<T>(extentId: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    const message = `extent ${extentId} is damaged: its statistics in the catalog cannot be read`;
    throw new EngineError("unavailable", message, { cause: error });
  }
}

/** Where in a list of statistics the wanted ones stand, and their names. */
type Layout = { ids: readonly number[]; positions: number[]; names: string[]; encodedNames?: string };

/** The columns with these names, in any case. */
export function columnsNamed(columns: readonly ColumnRecord[], names: readonly string[]): ColumnRecord[] {
  const wanted = new Set(names.map(foldName));
  return columns.filter(({ name }) => wanted.has(foldName(name)));
}
