import type { Caller } from "../../auth/caller.ts";
import { parseExactly } from "../../core/exact-json.ts";
import { EngineError } from "../../core/errors.ts";
import { linesOf } from "../../core/lines.ts";

type ParameterValue = string | number | readonly string[];

/** Runs queries, as the routes of queries do. */
export type GraphQueries = {
  run(request: {
    caller: Caller;
    address: string;
    database: string;
    text: string;
    parameters: ReadonlyMap<string, ParameterValue>;
    requestId: string;
    signal: AbortSignal;
    /** Lowers what the server allows a query. */
    budget?: QueryBudget;
  }): Promise<{ body: AsyncIterable<Uint8Array> }>;
};

export type QueryBudget = { wallMs: number; memoryBytes: number };

/** Who asks about a graph, and for what of the process. */
export type Asking = {
  caller: Caller;
  /** For the audit log. */
  address: string;
  requestId: string;
  /** Aborted when the client leaves. */
  signal: AbortSignal;
};

export type Row = Readonly<Record<string, unknown>>;

/** Gives the rows of one query; what comes from outside is in the parameters alone. */
export type AskSql = (text: string, parameters: Readonly<Record<string, ParameterValue>>) => Promise<Row[]>;

const ROW_BYTES = 32 * 1024 * 1024;
/** Of one answer: what fits into the memory of a node many times. */
const ANSWER_CHARS = 128 * 1024 * 1024;

/** Queries of one caller in one database: within their rights and budgets. */
export function askingSql(queries: GraphQueries, asking: Asking, database: string): AskSql {
  return async (text, given) => {
    const parameters = new Map(Object.entries(given));
    const { body } = await queries.run({ ...asking, database, text, parameters });
    const tooLong = new EngineError("invalid_query", `a row of the graph is longer than ${ROW_BYTES} bytes`);
    const rows: Row[] = [];
    let chars = 0;
    for await (const line of linesOf(body, { maxLineBytes: ROW_BYTES, tooLong: () => tooLong })) {
      chars += line.length;
      if (chars > ANSWER_CHARS) throw new EngineError("invalid_query", "the answer is too long: ask for fewer nodes");
      rows.push(parseExactly(line) as Row);
    }
    return rows;
  };
}
