import type { QueryRequest, QueryService } from "./contract/query.ts";

/**
 * Rows of one table by a condition, for deletions: asked as queries, so that a condition meets what every query meets,
 * the gate, the process of its own and the budgets, and its author's databases.
 */
export type RowMatchRequest = Pick<QueryRequest, "caller" | "database" | "requestId" | "signal"> & {
  table: string;
  /** An SQL expression over the table's columns. */
  where: string;
  /** Live extents at the snapshot: some, for a query holds all their files. */
  extentIds: readonly string[];
  snapshot: number;
};

export class RowMatcher {
  readonly #query: () => Promise<QueryService>;

  constructor(query: () => Promise<QueryService>) {
    this.#query = query;
  }

  /** How many rows of each extent match; those without one are absent. Rejects with `EngineError`. */
  async count(request: RowMatchRequest): Promise<Map<string, number>> {
    const { body } = await this.#run(request, "matching");
    const chunks: Uint8Array[] = [];
    for await (const chunk of body) chunks.push(chunk);
    const lines = Buffer.concat(chunks).toString("utf8").split("\n");
    const counts = new Map<string, number>();
    for (const line of lines) {
      if (line === "") continue;
      const [id, count] = Object.values(JSON.parse(line) as Record<string, unknown>);
      counts.set(String(id), Number(count));
    }
    return counts;
  }

  /** Writes the rows that do not match to a Parquet file at the path, where nothing is; how many. */
  async writeOthers(request: RowMatchRequest, path: string): Promise<number> {
    const { rows } = await this.#run(request, "others", path);
    return rows;
  }

  async #run(
    { table, where, extentIds, snapshot, ...request }: RowMatchRequest,
    rows: "matching" | "others",
    saveTo?: string,
  ) {
    const query = await this.#query();
    const matching = { table, rows, snapshot, extentIds: new Set(extentIds) };
    const save = saveTo === undefined ? {} : { format: "parquet" as const, saveTo };
    return await query.run({ ...request, text: where, matching, ...save });
  }
}
