import type { IncomingMessage, ServerResponse } from "node:http";
import { onTestFinished } from "vitest";
import { startServer, type TestServer } from "./cli.test-kit.ts";

export type Attempt = {
  key: string;
  table: string;
  database: string;
  inferTypes: string | undefined;
  body: string;
  token: string | undefined;
};

/** A server with a ledger, as the engine keeps one: a key that was applied is answered again and not applied again. */
export class FakeEngine {
  readonly attempts: Attempt[] = [];
  readonly stored: string[] = [];
  readonly #ledger = new Map<string, number>();
  /** What it says when it is asked for the table; by default that there is none. */
  columns: readonly { name: string; type: string }[] | undefined;
  /** What its acknowledgements say besides. */
  warnings: readonly object[] = [];
  server: TestServer | undefined;

  /** `before` and `after` may answer in the engine's place, before or after it stored the rows; true when they did. */
  async start(hooks: { before?: Hook; after?: Hook } = {}): Promise<Record<string, string>> {
    const server = await startServer((request, bytes, response) => {
      if (request.method === "GET") {
        this.#describe(response);
        return;
      }
      const attempt = attemptOf(request, bytes);
      this.attempts.push(attempt);
      const number = this.attempts.length;
      if (hooks.before?.(number, response, attempt) === true) return;
      const ack = this.#apply(attempt);
      if (hooks.after?.(number, response, attempt) === true) return;
      response.end(JSON.stringify(ack));
    });
    this.server = server;
    onTestFinished(() => server.close());
    return { ENGINE_SERVER_URL: server.url };
  }

  #describe(response: ServerResponse): void {
    if (this.columns === undefined) refuse(response, 404, { code: "table_not_found", message: "no such table" });
    else response.end(JSON.stringify({ columns: this.columns }));
  }

  #apply({ key, body }: Attempt): object {
    const earlier = this.#ledger.get(key);
    const lines = body.split("\n").filter((line) => line.trim() !== "");
    if (earlier === undefined) {
      this.stored.push(...lines);
      this.#ledger.set(key, lines.length);
    }
    const rows = earlier ?? lines.length;
    return {
      ...(this.warnings.length === 0 ? {} : { warnings: this.warnings }),
      snapshot_id: String(this.#ledger.size),
      extent_count: 1,
      rows_ingested: rows,
      bytes_written: 1,
      replayed: earlier !== undefined,
    };
  }
}

export type Hook = (attempt: number, response: ServerResponse, seen: Attempt) => boolean;

function attemptOf({ headers }: IncomingMessage, body: Buffer): Attempt {
  return {
    key: String(headers["x-idempotency-key"]),
    table: String(headers["x-table"]),
    database: String(headers["x-database"]),
    inferTypes: headers["x-engine-infer-types"]?.toString(),
    body: body.toString(),
    token: headers.authorization,
  };
}

export function refuse(
  response: ServerResponse,
  status: number,
  error: object,
  headers: Record<string, string> = {},
): true {
  response.writeHead(status, headers).end(JSON.stringify({ error }));
  return true;
}
