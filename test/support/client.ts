/** The smallest client: what a user would do with curl. */

export type Answer<T> = { status: number; headers: Headers; text: string; json: T };

export type Ack = {
  snapshot_id: string;
  extent_count: number;
  rows_ingested: number;
  bytes_written: number;
  replayed: boolean;
  warnings?: { code: string; column?: string; count: number; first_line: number }[];
};

export type ErrorBody = {
  error: {
    code: string;
    message: string;
    request_id: string;
    line?: number;
    column?: number | string;
    suggestion?: string;
  };
};

/** Longer than any answer takes: the limit is for tests that ask servers that may have stopped. */
const DEFAULT_TIMEOUT_MS = 600_000;

type Body = string | Uint8Array<ArrayBuffer>;

export async function ingest(
  url: string,
  table: string,
  body: Body,
  headers: Record<string, string> = {},
  timeoutMs = DEFAULT_TIMEOUT_MS,
): Promise<Answer<Ack & ErrorBody>> {
  const all = { "Content-Type": "application/x-ndjson", "X-Table": table, ...headers };
  const signal = AbortSignal.timeout(timeoutMs);
  return answerOf(await fetch(`${url}/v1/ingest`, { method: "POST", headers: all, body, signal }));
}

export async function query(
  url: string,
  text: string,
  headers: Record<string, string> = {},
  timeoutMs = DEFAULT_TIMEOUT_MS,
): Promise<Answer<ErrorBody> & { rows: Record<string, unknown>[] }> {
  const all = { "Content-Type": "application/sql", ...headers };
  const signal = AbortSignal.timeout(timeoutMs);
  const answer = await answerOf<ErrorBody>(
    await fetch(`${url}/v1/query`, { method: "POST", headers: all, body: text, signal }),
  );
  const rows = answer.status === 200 ? parseLines(answer.text) : [];
  return { ...answer, rows };
}

/** Rows of a query that must succeed. */
export async function rowsOf(url: string, text: string, database = "default"): Promise<Record<string, unknown>[]> {
  const answer = await query(url, text, { "X-Database": database });
  if (answer.status !== 200) throw new Error(`query failed with ${answer.status}: ${answer.text}`);
  return answer.rows;
}

export function ndjson(rows: readonly unknown[]): string {
  return rows.map((row) => `${JSON.stringify(row)}\n`).join("");
}

function parseLines(text: string): Record<string, unknown>[] {
  const lines = text.split("\n").filter((line) => line !== "");
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

async function answerOf<T>(response: Response): Promise<Answer<T>> {
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
  return { status: response.status, headers: response.headers, text, json: (isJson ? JSON.parse(text) : {}) as T };
}
