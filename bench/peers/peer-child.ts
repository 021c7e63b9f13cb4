import { sleep, systemClock } from "../../src/core/clock.ts";
import { messageOf } from "../../src/core/errors.ts";
import { diskBytesOf } from "../support/process-stats.ts";
import { openChdb } from "./chdb.ts";
import { openDuckDb, openDuckDbAuto, openDuckDbTable } from "./duckdb.ts";
import type { Library, PeerJob, PeerName, PeerReply, PeerRun } from "./peer.ts";

/** The process of a peer that is a library: `peer-child.ts NAME FOLDER`; see `peer.ts`. */

async function run(library: Library, folder: string, job: PeerJob): Promise<PeerRun> {
  await library.prepare(job);
  const diskBefore = await diskBytesOf(folder);
  const cpuBefore = process.cpuUsage();
  const cpuSeconds = () => {
    const { user, system } = process.cpuUsage(cpuBefore);
    return (user + system) / 1e6;
  };
  const startedMs = systemClock.monotonicMs();
  await library.load(job);
  const wallSeconds = (systemClock.monotonicMs() - startedMs) / 1000;
  const loadedCpuSeconds = cpuSeconds();
  await sleep(systemClock, job.settleMs);
  const settledCpuSeconds = cpuSeconds();
  const diskBytes = (await diskBytesOf(folder)) - diskBefore;
  const answers = await library.answers(job);
  return { wallSeconds, cpuSeconds: loadedCpuSeconds, settledCpuSeconds, diskBytes, answers };
}

const [name, folder = ""] = process.argv.slice(2);
const OPENERS: Readonly<Record<PeerName, (folder: string) => Promise<Library>>> = {
  duckdb: openDuckDb,
  "duckdb-auto": openDuckDbAuto,
  "duckdb-table": openDuckDbTable,
  chdb: openChdb,
};
const library = await OPENERS[name as PeerName](folder);

process.on("message", (job: PeerJob) => {
  run(library, folder, job)
    .then((done): PeerReply => ({ ok: true, run: done }))
    .catch((error: unknown): PeerReply => ({ ok: false, reason: messageOf(error) }))
    .then((reply) => process.send?.(reply))
    .catch((error: unknown) => console.error(error));
});
process.once("disconnect", () => {
  library
    .close()
    .catch((error: unknown) => console.error(error))
    .finally(() => process.exit());
});
