import { readFileSync } from "node:fs";
import { messageOf } from "../../src/core/errors.ts";
import { sleep, systemClock } from "../../src/core/clock.ts";
import { countRows, cutByRows, cutBySize } from "./bodies.ts";
import { HttpConnection, type HttpAnswer } from "./http-connection.ts";
import type { FromGenerator, LoadPlan, LoadResult, ToGenerator } from "./load-plan.ts";
import { quantile } from "../../src/capacity/quantile.ts";

/** The load generator's process: see `load-plan.ts`. */

const clock = systemClock;
/** Before a refused request is sent again. */
const RETRY_MS = 50;
/** How often due requests are looked for. */
const TICK_MS = 1;

/** Connections without a request, and when the requests fell due that found none. */
type Queue = { idle: HttpConnection[]; dueMs: number[] };

class Load {
  readonly #plan: LoadPlan;
  readonly #bodies: Buffer[];
  readonly #rowsByBody: number[];
  readonly #connections: HttpConnection[] = [];
  readonly #latenciesMs: number[] = [];
  readonly #result: LoadResult;
  readonly #commonHead: string;
  #sent = 0;

  constructor(plan: LoadPlan) {
    const file = readFileSync(plan.file);
    this.#plan = plan;
    this.#bodies = "rows" in plan.cut ? cutByRows(file, plan.cut.rows) : cutBySize(file, plan.cut.sizeBytes);
    this.#rowsByBody = this.#bodies.map(countRows);
    this.#commonHead = headOf(plan);
    this.#result = {
      wallSeconds: 0,
      cpuSeconds: 0,
      accepted: 0,
      refused: 0,
      failed: 0,
      unsent: 0,
      latencyMs: { p50: Number.NaN, p99: Number.NaN, max: Number.NaN },
      rowsAcknowledged: 0,
      bytesAcknowledged: 0,
      bytesAccepted: 0,
      acceptedByBody: this.#bodies.map(() => 0),
      ...(plan.keepsTimes === true ? { sentAtMs: {} } : {}),
    };
  }

  get bodies(): number {
    return this.#bodies.length;
  }

  async open(): Promise<void> {
    while (this.#connections.length < this.#plan.connections) this.#connections.push(await this.#connect());
  }

  async run(): Promise<LoadResult> {
    const cpuBefore = process.cpuUsage();
    const startedMs = clock.monotonicMs();
    if (this.#plan.pace === undefined) await Promise.all(this.#connections.map((each) => this.#sendInTurn(each)));
    else await this.#sendPaced(this.#plan.pace);
    const cpu = process.cpuUsage(cpuBefore);
    for (const connection of this.#connections) connection.close();
    const sorted = Float64Array.from(this.#latenciesMs).sort();
    return {
      ...this.#result,
      wallSeconds: (clock.monotonicMs() - startedMs) / 1000,
      cpuSeconds: (cpu.user + cpu.system) / 1e6,
      latencyMs: { p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99), max: quantile(sorted, 1) },
    };
  }

  async #sendInTurn(first: HttpConnection): Promise<void> {
    let connection = first;
    const { repeatForMs } = this.#plan;
    const endMs = clock.monotonicMs() + (repeatForMs ?? 0);
    const isWanted = (index: number) =>
      repeatForMs === undefined ? index < this.#bodies.length : clock.monotonicMs() < endMs;
    for (let index = this.#sent++; isWanted(index); index = this.#sent++) {
      let status = await this.#send(connection, index);
      while (status === 429) {
        await sleep(clock, RETRY_MS);
        connection = await this.#usable(connection);
        status = await this.#send(connection, index);
      }
      if (status !== 200) throw new Error(this.#result.firstFailure ?? `status ${status}`);
      connection = await this.#usable(connection);
    }
  }

  async #sendPaced({ perSecond, durationMs, waits }: NonNullable<LoadPlan["pace"]>): Promise<void> {
    const queue: Queue = { idle: [...this.#connections], dueMs: [] };
    const underWay = new Set<Promise<void>>();
    const startedMs = clock.monotonicMs();
    let due = 0;
    for (let nowMs = 0; nowMs < durationMs; nowMs = clock.monotonicMs() - startedMs) {
      for (const target = (nowMs / 1000) * perSecond; due < target; due++) {
        const dueMs = startedMs + (due / perSecond) * 1000;
        const connection = queue.idle.pop();
        if (connection === undefined) {
          if (waits === true) queue.dueMs.push(dueMs);
          else this.#result.unsent++;
          continue;
        }
        const sending = this.#sendDue(connection, dueMs, queue).finally(() => underWay.delete(sending));
        underWay.add(sending);
      }
      await sleep(clock, TICK_MS);
    }
    await Promise.all(underWay);
  }

  /** Sends the next request and those that wait; then the connection, or another when it is gone, is idle. */
  async #sendDue(first: HttpConnection, firstDueMs: number, { idle, dueMs: waiting }: Queue): Promise<void> {
    let connection = first;
    for (let dueMs: number | undefined = firstDueMs; dueMs !== undefined; dueMs = waiting.shift()) {
      await this.#send(connection, this.#sent++, dueMs).catch((error: unknown) => this.#fail(messageOf(error)));
      connection = await this.#usable(connection);
    }
    idle.push(connection);
  }

  /** The connection, or another in its place when the server has closed it. */
  async #usable(connection: HttpConnection): Promise<HttpConnection> {
    if (!connection.isClosed) return connection;
    const next = await this.#connect();
    this.#connections[this.#connections.indexOf(connection)] = next;
    return next;
  }

  /** The latency counts from `sinceMs`: else what falls due while the generator is late would seem to wait less. */
  async #send(connection: HttpConnection, index: number, sinceMs = clock.monotonicMs()): Promise<number> {
    const which = index % this.#bodies.length;
    const body = this.#bodies[which] ?? Buffer.alloc(0);
    const sentAtMs = clock.nowMs();
    const answer = await connection.send(this.#headOf(index, body.length), body);
    if (answer.status === 200) {
      this.#accept(answer, which, body, clock.monotonicMs() - sinceMs);
      if (this.#result.sentAtMs !== undefined) this.#result.sentAtMs[this.#keyOf(index)] = sentAtMs;
    } else if (answer.status === 429) this.#result.refused++;
    else this.#fail(`${answer.status}: ${answer.body}`);
    return answer.status;
  }

  #headOf(index: number, bodyBytes: number): string {
    const { tables, keyPrefix } = this.#plan;
    const table = tables.length === 0 ? "" : `X-Table: ${tables[index % tables.length]}\r\n`;
    const key = keyPrefix === undefined ? "" : `X-Idempotency-Key: ${this.#keyOf(index)}\r\n`;
    return `${this.#commonHead}${table}${key}Content-Length: ${bodyBytes}\r\n\r\n`;
  }

  #keyOf(index: number): string {
    return `${this.#plan.keyPrefix}-${index}`;
  }

  #accept(answer: HttpAnswer, which: number, body: Buffer, latencyMs: number): void {
    const result = this.#result;
    result.accepted++;
    result.bytesAccepted += body.length;
    result.acceptedByBody[which] = (result.acceptedByBody[which] ?? 0) + 1;
    this.#latenciesMs.push(latencyMs);
    if (!answer.body.startsWith("{")) return;
    const ack = JSON.parse(answer.body) as { rows_ingested: number; bytes_written: number; replayed: boolean };
    if (ack.replayed || ack.rows_ingested !== this.#rowsByBody[which])
      this.#fail(`a wrong acknowledgement: ${answer.body}`);
    result.rowsAcknowledged += ack.rows_ingested;
    result.bytesAcknowledged += ack.bytes_written;
  }

  #fail(reason: string): void {
    this.#result.failed++;
    this.#result.firstFailure ??= reason;
  }

  #connect(): Promise<HttpConnection> {
    return HttpConnection.open(this.#plan.host, this.#plan.port);
  }
}

function headOf(plan: LoadPlan): string {
  const headers = Object.entries({ Host: `${plan.host}:${plan.port}`, ...plan.headers });
  return `POST ${plan.path} HTTP/1.1\r\n${headers.map(([name, value]) => `${name}: ${value}\r\n`).join("")}`;
}

/** Resolves when the message is on its way: one that is still being written is lost with the process. */
function tell(message: FromGenerator): Promise<void> {
  return new Promise((resolve) => process.send?.(message, () => resolve()));
}

let load: Load | undefined;

async function obey(message: ToGenerator): Promise<void> {
  if (message.kind === "prepare") {
    load = new Load(message.plan);
    await load.open();
    await tell({ kind: "ready", bodies: load.bodies });
  } else if (load !== undefined) {
    await tell({ kind: "done", result: await load.run() });
    process.disconnect();
  }
}

process.on("message", (message: ToGenerator) => {
  obey(message).catch((error: unknown) => {
    console.error(messageOf(error));
    process.exit(1);
  });
});
