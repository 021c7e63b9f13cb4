import { systemClock } from "../../src/core/clock.ts";
import { mustAgree } from "../support/answers.ts";
import { answersByBody } from "../support/body-answers.ts";
import { addAnswers, answersOfTables, runIngest } from "../support/ingest-run.ts";
import { MIB, shown } from "../support/report.ts";
import { tableNames, type Side } from "./side.ts";

/**
 * Question: when several times more is offered than the server can take, does it stay within its memory, refuse what it
 * cannot take, keep what it acknowledged, and still answer in bounded time what it accepted?
 *
 * The capacity is measured first; then requests fall due at `factor` times that rate, whatever the server does.
 */
export type OverloadOptions = { seconds: number; factor: number };

/** Enough that refusals, not busy connections, bound what is offered. */
const CONNECTIONS = 512;
const SAMPLE_MS = 500;

export async function runOverload(side: Side, { seconds, factor }: OverloadOptions): Promise<void> {
  await side.run("warm_up");
  const capacity = await side.run("capacity");
  const perSecond = (capacity.accepted / capacity.wallSeconds) * factor;
  console.log(`capacity ${shown(capacity.accepted / capacity.wallSeconds)} requests/s, offered ${shown(perSecond)}`);

  const tables = tableNames(side.case, "overload");
  const before = await answersOfTables(side.server, tables, side.data.checks);
  const residentBytes: number[] = [];
  const sampling = systemClock.every(SAMPLE_MS, () => residentBytes.push(side.server.memory().residentBytes));
  const run = await runIngest(side.server, {
    file: side.data.path,
    cut: side.case.cut,
    connections: CONNECTIONS,
    tables,
    keyPrefix: "overload",
    pace: { perSecond, durationMs: seconds * 1000 },
  });
  sampling.cancel();

  const offered = run.accepted + run.refused + run.failed + run.unsent;
  console.log(`offered   ${offered} requests in ${shown(run.wallSeconds)} s`);
  console.log(`accepted  ${run.accepted} (${shown(run.accepted / run.wallSeconds)}/s)`);
  console.log(`refused   ${run.refused} with 429; ${run.unsent} not sent: every connection was busy`);
  console.log(`failed    ${run.failed} ${run.firstFailure ?? ""}`);
  // Beyond what the server takes a client waits for its turn for as long as it likes; this is the server's part.
  const { p50, p99, max } = run.serviceMs;
  console.log(`service   of accepted: p50 ${shown(p50)} ms, p99 ${shown(p99)} ms, max ${shown(max)} ms`);
  console.log(`loop p99  ${shown(run.loopP99Ms)} ms`);
  const [early, late] = [mostOf(residentBytes, 0.25, 0.5), mostOf(residentBytes, 0.75, 1)];
  console.log(
    `memory    idle ${mib(side.idleBytes)}, peak ${mib(run.peakBytes)}; most in the second quarter ${mib(early)}, in the last ${mib(late)}`,
  );
  addAnswers(before, answersByBody(side.data, side.case.cut)(run.acceptedByBody));
  mustAgree("the server", await answersOfTables(side.server, tables, side.data.checks), before);
  console.log("kept      every acknowledged row, and no other");
}

function mostOf(samples: readonly number[], from: number, to: number): number {
  return Math.max(...samples.slice(Math.floor(samples.length * from), Math.ceil(samples.length * to)));
}

function mib(sizeBytes: number): string {
  return `${shown(sizeBytes / MIB)} MiB`;
}
