import { Agent, request } from "node:http";
import { systemClock } from "../../src/core/clock.ts";
import { systemCodeOf } from "../../src/core/errors.ts";

export type Answered = {
  /** From sending the request to the last byte. */
  ms: number;
  sizeBytes: number;
  /** Empty unless it was to be kept. */
  body: string;
};

/** Queries over one connection that is kept open. Bytes are counted and dropped, unless they are to be kept. */
export class QueryClient {
  readonly #url: string;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  readonly #headers: Readonly<Record<string, string>>;

  constructor(serverUrl: string, { database = "default", language = "sql" } = {}) {
    this.#url = `${serverUrl}/v1/query`;
    this.#headers = {
      "X-Database": database,
      "Content-Type": language === "kql" ? "application/x-kql" : "application/sql",
    };
  }

  /** Rejects unless the answer is 200. */
  async run(sql: string, options: { keep?: boolean } = {}): Promise<Answered> {
    try {
      return await this.#send(sql, options);
    } catch (error) {
      if (!(error instanceof IdleTooLong)) throw error;
      return this.#send(sql, options);
    }
  }

  #send(sql: string, { keep = false }: { keep?: boolean }): Promise<Answered> {
    return new Promise((resolve, reject) => {
      const startedMs = systemClock.monotonicMs();
      const sent = request(this.#url, { method: "POST", agent: this.#agent, headers: this.#headers }, (answer) => {
        const failed = answer.statusCode !== 200;
        const chunks: Buffer[] = [];
        let sizeBytes = 0;
        answer.on("data", (chunk: Buffer) => {
          sizeBytes += chunk.length;
          if (keep || failed) chunks.push(chunk);
        });
        answer.on("end", () => {
          const ms = systemClock.monotonicMs() - startedMs;
          const body = Buffer.concat(chunks).toString("utf8");
          if (failed) reject(new Error(`the query answered ${answer.statusCode}: ${body}\n${sql}`));
          else resolve({ ms, sizeBytes, body });
        });
        answer.on("error", reject);
      });
      sent.on("error", (error) => {
        const wasIdle = sent.reusedSocket && systemCodeOf(error) === "ECONNRESET";
        reject(wasIdle ? new IdleTooLong() : error);
      });
      sent.end(sql);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** The server had closed the kept connection for its idleness, and took nothing of the request. */
class IdleTooLong extends Error {}
