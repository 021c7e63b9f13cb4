import { mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { makeCertificate, type Certificate } from "../support/certificate.ts";
import { startBenchServer, type BenchServer } from "../support/server.ts";
import { defineBenchmark } from "../suite/benchmark.ts";
import { loadTables, openLoad, type Load, type RunOptions } from "./drive/drive-load.ts";
import type { LoadRun } from "./drive/load-run.ts";
import { BOUNDS, findSaturation } from "./drive/saturation.ts";
import { rowsIn, targetOf, type Target } from "./drive/target.ts";
import { readProfile, type Profile } from "./profiles/profile.ts";

const DEFAULT = fileURLToPath(new URL("./profiles/ingest-ten-rows.toml", import.meta.url));

const positive = z.coerce.number().positive();

const options = z.strictObject({
  file: z.string().default(DEFAULT).describe("a profile; bench/load/profiles has some"),
  seconds: positive.optional().describe("for how long requests fall due, instead of the profile's duration"),
  processes: positive.int().optional().describe("generators; half of the cores unless given"),
  confirm: positive.default(60).describe("seconds for which a saturation must hold in the end"),
  start: positive.default(50).describe("requests a second that the search for a saturation begins with"),
  wait: positive.default(BOUNDS.p99Ms).describe("ms that a saturation's p99 may be at most"),
});
type Options = z.output<typeof options>;

export const benchmark = defineBenchmark({
  name: "load/profile",
  question: "How long do clients wait under the load that a profile describes, or what is the most that holds?",
  notMeasured: "Networks, merges. Clients share the server's machine, and tables grow from round to round.",
  options,
  measures: {
    offered: {
      unit: "/s",
      better: "more",
      doc: "requests that fell due; of a saturation, the highest rate that holds",
    },
    achieved: { unit: "/s", better: "more", doc: "requests accepted within the time" },
    p50: { unit: "ms", better: "less", doc: "from when a request fell due to its answer" },
    p90: { unit: "ms", better: "less", doc: "the same" },
    p99: { unit: "ms", better: "less", doc: "the same" },
    max: { unit: "ms", better: "less", doc: "the same" },
    service: { unit: "ms", better: "less", doc: "from a request's first byte to its answer, median" },
    errors: { unit: "%", better: "less", doc: "of the requests: refused or failed" },
    backlog: { unit: "requests", better: "less", doc: "that waited for a connection when the time was over" },
    rows: { unit: "rows/s", better: "more", doc: "acknowledged" },
    bytes: { unit: "MB/s", better: "more", doc: "acknowledged, before compression" },
    cpu: { unit: "CPU ms", better: "less", doc: "of the server, for one accepted request" },
    generator: { unit: "%", better: "less", doc: "of the machine that the generators took; past 40 a run is marked" },
  },
  rounds: 3,
  startsServer: true,
  open: async (given, context) => {
    const profile = await profileFor(given);
    const { processes } = given;
    const { seed, signal } = context;
    const certificate = profile.tls ? await certificateIn(context.folder) : undefined;
    const server = await startBenchServer({ entry: context.entry, env: tlsSettings(certificate) });
    try {
      const target = targetOf(server.url, certificate?.ca);
      const load = await openLoad({ url: server.url, ca: certificate?.ca, profile, seed, signal, processes });
      const marks: string[] = [];
      return {
        sides: [
          {
            name: "engine",
            round: async () => await measured(load, { server, target, profile, given, signal, marks }),
            processes: () => ({ server: server.pid }),
          },
        ],
        marks: () => marks.splice(0),
        close: async () => {
          await load.close();
          await server.stop();
        },
      };
    } catch (error) {
      await server.stop();
      throw error;
    }
  },
});

async function profileFor({ file, seconds }: Options): Promise<Profile> {
  const profile = await readProfile(file);
  if (profile.role !== "all_in_one") {
    throw new Error(`${file}: role must be "all_in_one" here: this benchmark starts one server, which has all roles`);
  }
  return seconds === undefined ? profile : { ...profile, duration: seconds * 1_000 };
}

async function certificateIn(folder: string): Promise<Certificate> {
  await mkdir(folder, { recursive: true });
  return await makeCertificate(folder);
}

function tlsSettings(certificate: Certificate | undefined): Record<string, string> {
  if (certificate === undefined) return {};
  return { ENGINE_TLS_CERT: certificate.certPath, ENGINE_TLS_KEY: certificate.keyPath };
}

type Round = {
  server: BenchServer;
  target: Target;
  profile: Profile;
  given: Options;
  signal: AbortSignal;
  marks: string[];
};

async function measured(load: Load, round: Round): Promise<Record<string, number>> {
  const { target, profile, marks } = round;
  const tables = profile.ingest === undefined ? [] : loadTables(profile);
  const before = await rowsIn(target, tables);
  const { run, cpuSeconds, acknowledged, failed } = await runOf(load, round);
  if (run.accepted === 0)
    throw new Error(`no request was accepted: ${run.firstFailure ?? "none was answered in time"}`);
  const stored = (await rowsIn(target, tables)) - before;
  // A request that failed may have been stored all the same.
  if (failed === 0 ? stored !== acknowledged : stored < acknowledged) {
    throw new Error(`${acknowledged} rows were acknowledged, and ${stored} are stored`);
  }
  marks.push(...run.marks);
  return valuesOf(run, cpuSeconds);
}

type Counted = { run: LoadRun; cpuSeconds: number; acknowledged: number; failed: number };

/** One run, or the one that confirmed the saturation; rows and failures are those of all runs that it took. */
async function runOf(load: Load, { server, profile, given, signal }: Round): Promise<Counted> {
  let [acknowledged, failed, cpuBefore] = [0, 0, 0];
  const counted = async (options: RunOptions): Promise<{ run: LoadRun; cpuSeconds: number }> => {
    const run = await load.run({ ...options, onStart: () => (cpuBefore = server.cpuSeconds()) });
    const cpuSeconds = server.cpuSeconds() - cpuBefore;
    acknowledged += run.rowsAcknowledged;
    failed += run.failed;
    return { run, cpuSeconds };
  };
  if (profile.rate !== "saturation") return { ...(await counted({})), acknowledged, failed };
  let last: { run: LoadRun; cpuSeconds: number } | undefined;
  await findSaturation({
    run: async (perSecond, purpose) => {
      const durationMs = purpose === "confirms" ? given.confirm * 1_000 : profile.duration;
      last = await counted({ rate: { perSecond }, durationMs });
      return last.run;
    },
    bounds: { ...BOUNDS, p99Ms: given.wait },
    startPerSecond: given.start,
    signal,
  });
  if (last === undefined) throw new Error("the search for the saturation ran nothing");
  return { ...last, acknowledged, failed };
}

function valuesOf(run: LoadRun, cpuSeconds: number): Record<string, number> {
  const { latencyMs, serviceMs, seconds, rowsAcknowledged, bytesAcknowledged } = run;
  return {
    offered: run.offeredPerSecond,
    achieved: run.achievedPerSecond,
    p50: latencyMs.p50,
    p90: latencyMs.p90,
    p99: latencyMs.p99,
    max: latencyMs.max,
    service: serviceMs.p50,
    errors: ((run.refused + run.failed) / run.offered) * 100,
    backlog: run.backlog,
    ...(rowsAcknowledged === 0 ? {} : { rows: rowsAcknowledged / seconds, bytes: bytesAcknowledged / 1e6 / seconds }),
    cpu: (cpuSeconds * 1_000) / run.accepted,
    generator: run.generatorShare * 100,
  };
}
