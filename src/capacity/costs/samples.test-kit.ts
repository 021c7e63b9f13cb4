import type { Costs, IngestObservation } from "./costs.ts";

/** Of a machine that is made up, whose true coefficients are known: what a fit must find again. */
export const TRUE = {
  /** CPU seconds of the one process, and of the part of a cluster that seals. */
  perRequest: 40e-6,
  perByte: 5e-9,
  perCommit: 300e-6,
  perSecond: 0.02,
  /** Bodies of one table gather for this long. */
  gatherSeconds: 0.002,
};

type Load = { shape?: string; bodyBytes: number; perSecond: number; clients?: number; offered?: boolean };

export function sampleIngest(
  deployment: IngestObservation["deployment"],
  { shape = "logs", bodyBytes, perSecond, clients = 1, offered = false }: Load,
): IngestObservation {
  const seconds = 10;
  const requests = perSecond * seconds;
  const rawBytes = requests * bodyBytes;
  const commits = Math.round(requests / (1 + perSecond * TRUE.gatherSeconds));
  const perByte = TRUE.perByte * (shape === "logs" ? 1 : 2);
  const cpu = requests * TRUE.perRequest + rawBytes * perByte + commits * TRUE.perCommit + seconds * TRUE.perSecond;
  const isSingle = deployment === "single";
  return {
    deployment,
    viaEdge: !isSingle,
    shape,
    rows: Math.ceil(rawBytes / 340),
    rawBytes,
    requests,
    bodyBytes,
    clients,
    tables: 1,
    offeredPerSecond: offered ? perSecond : null,
    seconds,
    commits,
    cpuSeconds: isSingle
      ? { server: cpu }
      : { edge: cpu * 0.2, ingest: cpu, committer: cpu * 0.3, postgres: commits * 200e-6, query: 0.05, store: 0.1 },
    mainThreadSeconds: isSingle ? { server: cpu * 0.3 } : { edge: cpu * 0.15, ingest: cpu * 0.3 },
    walBytes: isSingle ? null : commits * 4_000,
    storeRequests: isSingle ? {} : { put: commits, list: seconds * 4 },
    storedBytes: Math.ceil(rawBytes / 3),
    latencyMs: { p50: 2 + bodyBytes / 1e6, p99: 6 + bodyBytes / 5e5 },
    peakBytes: isSingle ? { server: 4e8 } : { edge: 2e8, ingest: 4e8 },
  };
}

const LOADS: readonly Load[] = [
  { bodyBytes: 340, perSecond: 200 },
  { bodyBytes: 340, perSecond: 2_000, clients: 64 },
  { bodyBytes: 65_536, perSecond: 100, clients: 8 },
  { bodyBytes: 1_048_576, perSecond: 20, clients: 4 },
  { bodyBytes: 1_048_576, perSecond: 5, clients: 4, offered: true },
  { bodyBytes: 16_777_216, perSecond: 2, clients: 2 },
  { bodyBytes: 1_048_576, perSecond: 10, clients: 4, shape: "wide" },
];

export const SAMPLE_COSTS: Costs = {
  schema: 1,
  version: "0.1.0",
  commit: null,
  measuredAt: "2026-11-28T12:00:00Z",
  seed: 1,
  machine: {
    processor: "one that is made up",
    cores: 2,
    cpuQuota: null,
    memoryBytes: 16e9,
    kernel: "6",
    node: "v22",
    fileSystem: "ef53",
    fsyncMs: { p50: 1, p99: 2 },
    sequentialWriteMiBPerSecond: 500,
    memoryCopyMiBPerSecond: 5_000,
    singleCoreMops: 500,
  },
  ingest: (["single", "sync", "staged"] as const).flatMap((deployment) =>
    LOADS.filter(({ shape }) => shape === undefined || deployment === "single").map((load) =>
      sampleIngest(deployment, load),
    ),
  ),
  compaction: [
    {
      shape: "logs",
      rows: 1e6,
      rawBytes: 340e6,
      storedBeforeBytes: 110e6,
      storedAfterBytes: 25e6,
      writtenBytes: 60e6,
      cpuSeconds: 4,
      peakBytes: 6e8,
    },
  ],
  commits: [
    { catalog: "sqlite", writers: 8, commits: 10_000, seconds: 5, cpuSeconds: 4, walBytes: null },
    { catalog: "postgres", writers: 8, commits: 5_000, seconds: 5, cpuSeconds: 4, walBytes: 2e7 },
  ],
  catalog: { bytesPerExtent: 1_500, bytesPerKey: 200 },
  queries: (["point", "needle", "window", "group", "scan", "fresh"] as const).flatMap((queryClass) =>
    [true, false].flatMap((isCached) =>
      [50e6, 300e6].map((rangeBytes) => ({
        class: queryClass,
        isCached,
        rangeBytes,
        queries: 20,
        latencyMs: { p50: 8 + rangeBytes / 1e7, p99: 20 + rangeBytes / 5e6 },
        cpuSeconds: 0.005 + rangeBytes * 1.5e-10 + (isCached ? 0 : 0.01),
        peakBytes: 2e8,
      })),
    ),
  ),
  memory: {
    idleBytes: { server: 4.5e8, edge: 1.5e8, ingest: 2.5e8, query: 3e8, committer: 2e8, compaction: 2e8 },
    perConnectionBytes: 20_000,
    perInFlightByte: 2.5,
  },
  jobs: [{ catalog: "postgres", claimers: 4, jobs: 10_000, seconds: 10, cpuSeconds: 8 }],
  sandboxes: { startMs: { p50: 80, p99: 150 }, startCpuSeconds: 0.1, idleBytes: 2e7, eventsPerSecond: 10_000 },
  given: {},
};
