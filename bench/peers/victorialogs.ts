import { readFileSync } from "node:fs";
import { sleep, systemClock } from "../../src/core/clock.ts";
import type { DataFile } from "../support/data-file.ts";
import { prepareLoad } from "../support/generator.ts";
import { cpuSecondsOf, pidListeningOn } from "../support/process-stats.ts";
import { MIB } from "../support/report.ts";
import type { Peer, PeerRun } from "./peer.ts";

/**
 * VictoriaLogs over HTTP, which the user starts: bodies of 1 MiB from 4 connections, as for the engine. Its
 * disk is what its own metrics say; its CPU is read from the kernel, so it runs on this machine. It acknowledges before rows are visible or durable, so the wait until all rows are
 * seen is told too. It has no MD5: instead of the hash, the number of distinct values of that column is compared.
 */
const CONNECTIONS = 4;
const VISIBLE_WITHIN_MS = 30_000;
const POLL_MS = 50;

export function victoriaLogsPeer(url: string, settleMs: number): Peer {
  return {
    name: "victorialogs",
    pid: pidListeningOn(Number(new URL(url).port)),
    load: (file) => load(url, file, systemClock.nowMs() % ACCOUNTS, settleMs),
    stop: async () => {},
  };
}

/** Tenants are numbered by 32 bits. Every load gets one of its own, so that nothing of before is there. */
const ACCOUNTS = 2 ** 32;

async function load(url: string, file: DataFile, account: number, settleMs: number): Promise<PeerRun> {
  const { hostname, port } = new URL(url);
  const generator = await prepareLoad({
    host: hostname,
    port: Number(port),
    path: `/insert/jsonline?${insertParameters(file).toString()}`,
    headers: { "Content-Type": "application/stream+json", AccountID: String(account) },
    tables: [],
    file: file.path,
    cut: { sizeBytes: MIB },
    connections: CONNECTIONS,
  });
  const pid = pidListeningOn(Number(port));
  const diskBefore = await storedBytes(url);
  const cpuBefore = cpuSecondsOf(pid);
  const run = await generator.run();
  if (run.failed > 0) throw new Error(`VictoriaLogs refused: ${run.firstFailure ?? ""}`);
  const cpuSeconds = cpuSecondsOf(pid) - cpuBefore;
  const startedMs = systemClock.monotonicMs();
  const seen = await allSeen(url, account, file);
  const visibleMs = systemClock.monotonicMs() - startedMs;
  await sleep(systemClock, settleMs);
  const settledCpuSeconds = cpuSecondsOf(pid) - cpuBefore;
  const sameDistinct = distinctOf(file) === seen.distinct;
  return {
    wallSeconds: run.wallSeconds,
    cpuSeconds,
    settledCpuSeconds,
    diskBytes: (await storedBytes(url)) - diskBefore,
    answers: { rows: seen.rows, sum: seen.sum, hash: sameDistinct ? file.expected.hash : Number.NaN },
    visibleMs,
  };
}

function insertParameters({ columns, checks }: DataFile): URLSearchParams {
  const has = (name: string) => columns.some((column) => column.name === name);
  return new URLSearchParams({
    _time_field: "at",
    _msg_field: has("body") ? "body" : checks.hashColumn,
    _stream_fields: ["service", "label"].filter(has).join(","),
  });
}

/** As VictoriaLogs itself counts it. */
async function storedBytes(url: string): Promise<number> {
  const lines = (await (await fetch(`${url}/metrics`)).text()).split("\n");
  const valueOf = (name: string) => {
    const line = lines.find((each) => each.startsWith(`${name} `));
    if (line === undefined) throw new Error(`${url} has no metric ${name}`);
    return Number(line.slice(name.length + 1));
  };
  return valueOf('vl_data_size_bytes{type="storage"}') + valueOf('vl_data_size_bytes{type="indexdb"}');
}

type Seen = { rows: number; sum: number; distinct: number };

async function allSeen(url: string, account: number, file: DataFile): Promise<Seen> {
  const deadlineMs = systemClock.monotonicMs() + VISIBLE_WITHIN_MS;
  for (;;) {
    if ((await rowsSeen(url, account)) >= file.rows || systemClock.monotonicMs() > deadlineMs) break;
    await sleep(systemClock, POLL_MS);
  }
  const { sumColumn } = file.checks;
  const hashField = fieldOf(file);
  const [row] = await query(url, account, `* | stats count() n, sum(${sumColumn}) s, count_uniq(${hashField}) d`);
  return { rows: Number(row?.["n"]), sum: Number(row?.["s"]), distinct: Number(row?.["d"]) };
}

/** The name under which the hashed column is kept: the message's has one of its own. */
function fieldOf(file: DataFile): string {
  return insertParameters(file).get("_msg_field") === file.checks.hashColumn ? "_msg" : file.checks.hashColumn;
}

async function rowsSeen(url: string, account: number): Promise<number> {
  const [row] = await query(url, account, "* | stats count() n");
  return Number(row?.["n"] ?? 0);
}

async function query(url: string, account: number, text: string): Promise<Record<string, string>[]> {
  const response = await fetch(`${url}/select/logsql/query`, {
    method: "POST",
    headers: { AccountID: String(account) },
    body: new URLSearchParams({ query: text }),
  });
  const answer = await response.text();
  if (!response.ok) throw new Error(`VictoriaLogs answered ${response.status}: ${answer}`);
  const lines = answer.split("\n").filter((line) => line !== "");
  return lines.map((line) => JSON.parse(line) as Record<string, string>);
}

function distinctOf({ path, checks }: DataFile): number {
  const lines = readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line !== "");
  return new Set(lines.map((line) => (JSON.parse(line) as Record<string, unknown>)[checks.hashColumn])).size;
}
