import { EngineError } from "../../../core/errors.ts";
import { parseExactly } from "../../../core/exact-json.ts";
import { linesOf } from "../../../core/lines.ts";
import { MCP_LIMITS } from "../limits.ts";

/**
 * The first rows of a result in NDJSON, each as its values in the order of the columns: at most `limit`, and no more than
 * fit into an answer by far. The rest of the body is not read. Throws `invalid_query` where the first row is too long.
 */
export async function rowsOf(
  body: AsyncIterable<Uint8Array>,
  columns: readonly string[],
  limit: number,
): Promise<unknown[][]> {
  const rows: unknown[][] = [];
  let takenChars = 0;
  const tooLong = new EngineError(
    "invalid_query",
    `the first row alone is longer than ${MCP_LIMITS.rowBytes} bytes: select fewer columns, or cut texts with left()`,
  );
  try {
    for await (const line of linesOf(body, { maxLineBytes: MCP_LIMITS.rowBytes, tooLong: () => tooLong })) {
      rows.push(valuesOf(line, columns));
      takenChars += line.length;
      if (rows.length >= limit || takenChars > ENOUGH_CHARS) break;
    }
  } catch (error) {
    // The rows before one that is too long are shown.
    if (error !== tooLong || rows.length === 0) throw error;
  }
  return rows;
}

/** Far more than an answer has room for, also where the names of columns are most of a line. */
const ENOUGH_CHARS = 32 * MCP_LIMITS.textBytes;

function valuesOf(line: string, columns: readonly string[]): unknown[] {
  const row = parseExactly(line) as Record<string, unknown>;
  return columns.map((name) => row[name] ?? null);
}
