import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openClient, readText, type EngineClient } from "../../client/client.ts";
import type { CliContext } from "../../client/context.ts";
import { CliError, EXIT } from "../../client/failure.ts";
import { formatAddress, type Address } from "../../config/kinds.ts";
import { loadConfig } from "../../config/load.ts";
import { awaitHealth } from "../service/await-health.ts";

const START_TIMEOUT_MS = 60_000;
const REQUEST_TIMEOUT_MS = 60_000;
const ROW = '{"label":"self-test","n":1}';
const TABLE = "self_test";
/** The row is its answer. */
const QUESTION = `SELECT label, count(*) AS n FROM ${TABLE} GROUP BY label`;

/**
 * Whether this program works on this machine: it serves from a temporary folder, takes a row and answers a query, for
 * which it loads all its native packages and starts its threads and child processes. @throws CliError
 */
export async function runSelfTest(context: CliContext): Promise<number> {
  const home = await mkdtemp(join(tmpdir(), "engine-self-test-"));
  try {
    const listen = { host: "127.0.0.1", port: await freePort() };
    // Options of this machine are not what is tested, and their ports may be taken.
    const env = { ENGINE_HOME: home, ENGINE_LOG_LEVEL: "error", ENGINE_GRPC_ADDR: "off", ENGINE_OTLP_ADDR: "off" };
    const loaded = loadConfig({ env, rows: await context.deps.rows() });
    const stop = new AbortController();
    const served = context.deps.serve({ ...loaded, listen, isLocal: true }).finally(() => {
      stop.abort(new CliError("the server ended before it answered"));
    });
    const asked = ask(context, listen, stop.signal).finally(() => {
      // The server drains and ends, as one that is told to stop.
      if (!stop.signal.aborted) process.kill(process.pid, "SIGTERM");
    });
    const [ended, answered] = await Promise.allSettled([served, asked]);
    if (ended.status === "rejected") throw ended.reason;
    if (answered.status === "rejected") throw answered.reason;
    if (ended.value !== 0) throw new CliError(`the server ended with exit code ${ended.value}`);
    await context.writeLine(`${context.deps.version} works on this machine`);
    return EXIT.ok;
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

async function ask(context: CliContext, listen: Address, signal: AbortSignal): Promise<void> {
  const { version } = context.deps;
  const problem = await awaitHealth(context, listen, { timeoutMs: START_TIMEOUT_MS, version, signal });
  if (problem !== undefined) throw new CliError(problem);
  const url = `http://${formatAddress(listen)}`;
  const client = await openClient({ url, origin: "the test" }, `engine/${version}`);
  try {
    await post(client, "/v1/ingest", {
      body: ROW,
      headers: { "content-type": "application/x-ndjson", "x-table": TABLE },
    });
    const answer = await post(client, "/v1/query", { body: QUESTION, headers: { "content-type": "application/sql" } });
    if (answer.trim() !== ROW) throw new CliError(`the query of one row was answered by ${answer.slice(0, 200)}`);
  } finally {
    await client.close();
  }
}

type Sent = { body: string; headers: Readonly<Record<string, string>> };

async function post(client: EngineClient, path: string, sent: Sent): Promise<string> {
  const reply = await client.send({ method: "POST", path, ...sent, timeoutMs: REQUEST_TIMEOUT_MS });
  const text = await readText(reply);
  if (reply.status !== 200) throw new CliError(`${path} was answered ${reply.status}: ${text.slice(0, 200)}`);
  return text;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
