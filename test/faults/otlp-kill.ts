import { status as STATUS, type ServiceError } from "@grpc/grpc-js";
import { delay, freePort } from "../../src/core/waiting.test-kit.ts";
import { seededRandom } from "../../src/core/random.ts";
import { fixed64, int, len, request, text } from "../../src/format/otlp/wire.test-kit.ts";
import { rawClient, type RawClient } from "../../src/io/grpc/grpc-client.test-kit.ts";
import { startEngine, temporaryHome } from "../support/engine.ts";
import { rowsOf } from "../support/client.ts";
import { installed, python } from "../api/otlp.test-kit.ts";

/**
 * `kill -9` at random moments while logs are sent by OTLP, and a count after the last restart. What must hold: of a request
 * with a key, retried until it is acknowledged, every record is there once; of one that was never acknowledged all are
 * there once or none. Beside them the official exporter's classes send without a key, and send again what failed: of theirs
 * each acknowledged record is there at least once.
 */
export type OtlpKillOptions = {
  seed: number;
  kills: number;
  env?: Record<string, string>;
  /** How long after its acknowledgement a record may take to be there; it must be there at once unless given. */
  visibleWithinMs?: number;
};

export type OtlpKillReport = { requests: number; retries: number; exported: number; problems: string[] };

const CLIENTS_PER_PROTOCOL = 3;
const MAX_RECORDS = 300;
const LIFE_MS = { min: 20, spread: 900 };
const EXPORT = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";

type Sent = { records: number; isAcknowledged: boolean };
type Run = { sent: Map<string, Sent>; retries: number; isStopping: boolean };
type Send = (key: string, body: Buffer) => Promise<void>;

/** The call was not answered, or was answered with "later". */
class ComeAgain extends Error {}

export async function killUnderOtlp(options: OtlpKillOptions): Promise<OtlpKillReport> {
  const random = seededRandom(options.seed);
  const { home, remove } = await temporaryHome();
  const [port, grpcPort] = [await freePort(), await freePort()];
  const grpc = `127.0.0.1:${grpcPort}`;
  const env = { ...options.env, ENGINE_OTLP_ADDR: grpc };
  const client = rawClient(grpc);
  try {
    const run: Run = { sent: new Map(), retries: 0, isStopping: false };
    const url = `http://127.0.0.1:${port}`;
    const senders = Array.from({ length: CLIENTS_PER_PROTOCOL }, (_, i) => [
      keepSending(run, `grpc-${i}`, options.seed + i, overGrpc(client)),
      keepSending(run, `http-${i}`, options.seed - i, overHttp(url)),
    ]).flat();
    let engine = await startEngine({ home, port, env });
    const exporter = installed.status === 0 ? python(["until-closed", grpc], untilStopped(run)) : undefined;
    for (let kill = 0; kill < options.kills; kill++) {
      await delay(LIFE_MS.min + random.next() * LIFE_MS.spread);
      await engine.stop("SIGKILL");
      engine = await startEngine({ home, port, env });
    }
    run.isStopping = true;
    await Promise.all(senders);
    const exported = exporter === undefined ? 0 : Number(await exporter);
    const problems = await problemsLeft(() => check(run, url, exported), options.visibleWithinMs ?? 0);
    await engine.stop();
    return { requests: run.sent.size, retries: run.retries, exported, problems };
  } finally {
    client.close();
    await remove();
  }
}

/** Ends when the run is about to stop. */
async function* untilStopped(run: Run): AsyncGenerator<Uint8Array> {
  while (!run.isStopping) await delay(50);
  yield Buffer.alloc(0);
}

async function keepSending(run: Run, client: string, seed: number, send: Send): Promise<void> {
  const random = seededRandom(seed);
  for (let sequence = 0; !run.isStopping; sequence++) {
    const key = `${client}-${sequence}`;
    const sent: Sent = { records: Math.ceil(MAX_RECORDS ** random.next()), isAcknowledged: false };
    run.sent.set(key, sent);
    const body = bodyOf(key, sent.records);
    while (!sent.isAcknowledged) {
      try {
        await send(key, body);
        sent.isAcknowledged = true;
      } catch (error) {
        if (!(error instanceof ComeAgain)) throw error;
        run.retries++;
        await delay(10);
      }
    }
  }
}

/** The name of the event is the key, and the number of the record its severity. */
function bodyOf(key: string, records: number): Buffer {
  const record = (n: number): Buffer =>
    Buffer.concat([fixed64(1, 1_767_323_045_000_000_000n), int(2, n), len(5, text("x".repeat(100))), len(12, key)]);
  return request(...Array.from({ length: records }, (_, n) => record(n)));
}

const COME_AGAIN: ReadonlySet<number> = new Set([STATUS.UNAVAILABLE, STATUS.CANCELLED, STATUS.DEADLINE_EXCEEDED]);

function overGrpc(client: RawClient): Send {
  return async (key, body) => {
    try {
      await client.unary(EXPORT, body, { metadata: { "x-idempotency-key": key }, deadlineMs: 20_000 });
    } catch (error) {
      throw COME_AGAIN.has((error as ServiceError).code) ? new ComeAgain() : error;
    }
  };
}

function overHttp(url: string): Send {
  return async (key, body) => {
    const headers = { "Content-Type": "application/x-protobuf", "X-Idempotency-Key": key };
    const options = { method: "POST", headers, body: Uint8Array.from(body) };
    const answer = await fetch(`${url}/v1/logs`, options).catch((error: unknown) => {
      throw error instanceof TypeError ? new ComeAgain() : error;
    });
    const said = await answer.text().catch(() => {
      throw new ComeAgain();
    });
    if (answer.status === 503) throw new ComeAgain();
    if (answer.status !== 200) throw new Error(`status ${answer.status}: ${said}`);
  };
}

/** What is wrong still after that time. */
async function problemsLeft(find: () => Promise<string[]>, waitMs: number): Promise<string[]> {
  for (const untilMs = performance.now() + waitMs; ; await delay(500)) {
    const problems = await find();
    if (problems.length === 0 || performance.now() > untilMs) return problems;
  }
}

async function check(run: Run, url: string, exported: number): Promise<string[]> {
  const problems: string[] = [];
  const counted = await rowsOf(
    url,
    "SELECT label, count(*) AS n, count(DISTINCT severity_number) AS numbers FROM otel_logs WHERE label <> 'log' GROUP BY label",
  );
  const found = new Map(
    counted.map(({ label, n, numbers }) => [String(label), { n: Number(n), numbers: Number(numbers) }]),
  );
  for (const [key, { records, isAcknowledged }] of run.sent) {
    const { n, numbers } = found.get(key) ?? { n: 0, numbers: 0 };
    // Number 0 is no severity: its record has none.
    const isWhole = n === records && numbers === records - 1;
    if (!isWhole && (isAcknowledged || n > 0))
      problems.push(`${key}: ${n} of ${records} records, ${numbers} different`);
    found.delete(key);
  }
  for (const key of found.keys()) problems.push(`${key}: records that nobody sent`);
  const bodies = await rowsOf(url, "SELECT DISTINCT body FROM otel_logs WHERE scope_name = 'until-closed'");
  const there = new Set(bodies.map(({ body }) => body));
  for (let n = 0; n < exported; n++) if (!there.has(`exported ${n}`)) problems.push(`exported ${n} is not there`);
  return problems;
}
