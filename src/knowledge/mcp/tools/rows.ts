import { EngineError } from "../../../core/errors.ts";
import { MCP_LIMITS } from "../limits.ts";

const NEWLINE = 0x0a;

/**
 * The first rows of a result in NDJSON, each as its values in the order of the columns: at most `limit`, and no more than
 * fit into an answer by far. The rest of the body is not read.
 */
export async function rowsOf(
  body: AsyncIterable<Uint8Array>,
  columns: readonly string[],
  limit: number,
): Promise<unknown[][]> {
  const rows: unknown[][] = [];
  for await (const line of linesOf(body, limit)) rows.push(valuesOf(line, columns));
  return rows;
}

async function* linesOf(body: AsyncIterable<Uint8Array>, limit: number): AsyncGenerator<string> {
  let pending: Uint8Array[] = [];
  let pendingBytes = 0;
  let count = 0;
  let takenBytes = 0;
  for await (const piece of body) {
    let start = 0;
    for (let end = piece.indexOf(NEWLINE); end >= 0; end = piece.indexOf(NEWLINE, start)) {
      pending.push(piece.subarray(start, end));
      start = end + 1;
      const line = Buffer.concat(pending).toString("utf8");
      pending = [];
      pendingBytes = 0;
      if (line !== "") yield line;
      if (line !== "") count++;
      takenBytes += line.length;
      // Values without the names of their columns take less than their line, but hardly less than half of it.
      if (count >= limit || takenBytes > ENOUGH_BYTES) return;
    }
    const rest = piece.subarray(start);
    pendingBytes += rest.byteLength;
    pending.push(rest);
    if (pendingBytes <= MCP_LIMITS.rowBytes) continue;
    if (count > 0) return;
    throw new EngineError(
      "invalid_query",
      `the first row alone is longer than ${MCP_LIMITS.rowBytes} bytes: select fewer columns, or cut texts with left()`,
    );
  }
  const line = Buffer.concat(pending).toString("utf8");
  if (line !== "") yield line;
}

const ENOUGH_BYTES = 32 * MCP_LIMITS.textBytes;

function valuesOf(line: string, columns: readonly string[]): unknown[] {
  const row = JSON.parse(line, exact as (key: string, value: unknown) => unknown) as Record<string, unknown>;
  return columns.map((name) => row[name] ?? null);
}

/** Integers that a double cannot hold stay what they are, as text. */
function exact(_key: string, value: unknown, { source }: { source?: string }): unknown {
  const isLost = typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value);
  return isLost && source !== undefined && /^-?\d+$/.test(source) ? source : value;
}
