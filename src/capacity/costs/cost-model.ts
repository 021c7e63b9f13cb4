import type { CostPart, Costs, IngestObservation, QueryClass, QueryObservation } from "./costs.ts";
import { fit, valueOf, type Fit, type FitPoint } from "./fit.ts";

/** What `costs.ts` has observed, as functions of a workload. All CPU is in seconds of one core of the machine measured. */
export type CostModel = {
  costs: Costs;
  /** By deployment, what was observed of it. Throws a sentence where nothing was. */
  ingest: (deployment: Costs["ingest"][number]["deployment"]) => IngestCosts;
  /** Throws a sentence where the class was not observed. */
  query: (queryClass: QueryClass) => QueryCosts;
  compaction: (shape: string) => CompactionCosts;
  /** CPU seconds of one job from enqueue to done, without what it does. Throws where none was measured. */
  jobCpu: () => number;
};

/** What comes in of one stream, in a second or any other span. */
export type IngestAmount = {
  requests: number;
  bytes: number;
  /** Of the catalog: each may be of several flushes. */
  commits: number;
  /** Of tables: each has the bodies of one that gathered. */
  flushes: number;
  seconds: number;
  shape: string;
};

/** What comes to one node, where each client has one request under way. */
export type GatheredLoad = {
  requestsPerSecond: number;
  bodyBytes: number;
  rowsPerRequest: number;
  tables: number;
  clients: number;
};

export type IngestCosts = {
  parts: readonly CostPart[];
  /** CPU seconds of a part; those of its first thread alone for `main`. */
  cpu: (part: CostPart, amount: IngestAmount) => number;
  main: (part: CostPart, amount: IngestAmount) => number;
  /** Of a part: see `Fit.errorP90`. */
  errorP90: (part: CostPart) => number;
  /** Whether a committer commits what all nodes have gathered, or each node its own. */
  isCommittedByOne: boolean;
  /** Commits and flushes a second of requests to so many tables on one node. */
  gathered: (load: GatheredLoad) => { commits: number; flushes: number };
  /** The same on a server that has more to do than it can: each client has a request that waits for the next flush. */
  crowded: (load: GatheredLoad) => { commits: number; flushes: number };
  /** Seconds from sending to acknowledgement on a machine with little to do. */
  latency: (bodyBytes: number) => { p50: number; p99: number };
  /** Requests to the object store by kind. */
  storeRequests: (amount: IngestAmount) => Readonly<Record<string, number>>;
  /** Of the log of PostgreSQL. */
  walBytes: (amount: IngestAmount) => number;
  /** Bytes of extents before any merge: each has some of its own. */
  storedBytes: (amount: IngestAmount) => number;
  /** What was measured, for who goes beyond it. */
  bodyBytes: { least: number; most: number };
};

export type QueryCosts = {
  cpu: (rangeBytes: number, cached: number) => number;
  /** Seconds of an answer with nothing beside it on `cores` cores. */
  latency: (rangeBytes: number, cached: number, cores: number) => { p50: number; p99: number };
  errorP90: number;
  peakBytes: number;
  rangeBytes: { least: number; most: number };
};

export type CompactionCosts = {
  cpuPerRawByte: number;
  writtenPerRawByte: number;
  storedPerRawByte: number;
  peakBytes: number;
};

export function costModel(costs: Costs): CostModel {
  const speed = costs.given.coreSpeed ?? 1;
  return {
    costs,
    ingest: onceEach((deployment) => ingestCosts(costs, deployment, speed)),
    query: onceEach((queryClass) => queryCosts(costs, queryClass, speed)),
    compaction: onceEach((shape) => compactionCosts(costs, shape, speed)),
    jobCpu: () => jobCpu(costs) / speed,
  };
}

/** A plan asks for the same fits again and again. */
function onceEach<K, V>(make: (key: K) => V): (key: K) => V {
  const made = new Map<K, V>();
  return (key) => {
    const value = made.get(key) ?? make(key);
    made.set(key, value);
    return value;
  };
}

function ingestCosts(costs: Costs, deployment: IngestObservation["deployment"], speed: number): IngestCosts {
  const all = costs.ingest.filter((each) => each.deployment === deployment);
  if (all.length === 0) {
    const there = [...new Set(costs.ingest.map((each) => each.deployment))].join(", ");
    throw new Error(
      `the costs have no run of the mode ${deployment}, only of ${there}; measure it, or plan another mode`,
    );
  }
  const parts = [...new Set(all.flatMap(({ cpuSeconds }) => Object.keys(cpuSeconds) as CostPart[]))];
  const shapes = [...new Set(all.map(({ shape }) => shape))];
  const groups = groupsOf(all);
  const termsOf = observedTerms(groups);
  // The terms of clusters are told apart by whether requests passed an edge; plans always have one.
  const names = ["requests", "direct requests", "commits", "flushes", "seconds", ...shapes.map(byteTerm)];
  const fitOf = (part: CostPart, values: (of: IngestObservation) => number | undefined, idleCores?: number): Fit => {
    const own = all.filter(({ viaEdge }) => part !== "edge" || viaEdge);
    const idle = idleCores === undefined ? [] : [{ terms: { seconds: 1 }, value: idleCores }];
    const points = own.flatMap((each): FitPoint[] => {
      const value = values(each);
      return value === undefined ? [] : [{ terms: termsOf(each), value }];
    });
    return fit([...points, ...idle], names);
  };
  const { idleCores } = costs.memory;
  const cpu = new Map(
    parts.map((part) => [part, fitOf(part, ({ cpuSeconds }) => cpuSeconds[part], idleCores?.[part])]),
  );
  const main = new Map(
    parts
      .filter((part) => all.some(({ mainThreadSeconds }) => (mainThreadSeconds[part] ?? 0) > 0))
      .map((part) => [part, fitOf(part, ({ mainThreadSeconds }) => mainThreadSeconds[part])]),
  );
  const shapeFactor = shapeFactors(costs, shapes);
  const spent = (one: Fit | undefined, amount: IngestAmount) =>
    one === undefined ? 0 : valueOf(one.coefficients, amountTerms(amount, shapeFactor)) / speed;
  const [p50, p99] = [latencyFit(costs, all, "p50"), latencyFit(costs, all, "p99")];
  const kinds = [...new Set(all.flatMap(({ storeRequests }) => Object.keys(storeRequests)))];
  const requests = kinds.map((kind) => {
    const points = all.map((each) => ({ terms: termsOf(each), value: each.storeRequests[kind] ?? 0 }));
    return [
      kind,
      points.some(({ value }) => value > 0) ? fit(points, ["flushes", "commits", "seconds"]) : undefined,
    ] as const;
  });
  const wal = all.filter(({ walBytes }) => walBytes !== null);
  const walFit =
    wal.length === 0
      ? undefined
      : fit(
          wal.map((each) => ({ terms: termsOf(each), value: each.walBytes ?? 0 })),
          ["requests", "commits", "seconds"],
        );
  const sizes = all.map(({ bodyBytes }) => bodyBytes);
  // Extents are alike in every mode.
  const storedShapes = [...new Set(costs.ingest.map(({ shape }) => shape))];
  const storedFit = fit(
    costs.ingest.map((each) => ({ terms: termsOf(each), value: each.storedBytes })),
    ["flushes", ...storedShapes.map(byteTerm)],
  );
  const storedShape: ShapeFactor = (shape) => {
    if (!storedShapes.includes(shape)) throw unknownShape(costs, shape);
    return { shape, factor: 1 };
  };
  return {
    parts,
    cpu: (part, amount) => spent(cpu.get(part), amount),
    main: (part, amount) => spent(main.get(part), amount),
    errorP90: (part) => cpu.get(part)?.errorP90 ?? 0,
    isCommittedByOne: deployment === "staged",
    gathered: (load) => gatheredBy(groups.usual, load),
    crowded: (load) => gatheredBy(groups.crowded, load),
    latency: (bodyBytes) => ({ p50: atBytes(p50, bodyBytes), p99: atBytes(p99, bodyBytes) }),
    storeRequests: (amount) =>
      Object.fromEntries(
        requests.map(([kind, one]) => [
          kind,
          one === undefined
            ? 0
            : valueOf(one.coefficients, { flushes: amount.flushes, commits: amount.commits, seconds: amount.seconds }),
        ]),
      ),
    walBytes: ({ requests: count, commits, seconds }) =>
      walFit === undefined ? 0 : valueOf(walFit.coefficients, { requests: count, commits, seconds }),
    storedBytes: (amount) => valueOf(storedFit.coefficients, amountTerms(amount, storedShape)),
    bodyBytes: { least: Math.min(...sizes), most: Math.max(...sizes) },
  };
}

const byteTerm = (shape: string) => `bytes of ${shape}`;

/** What an observation counted, by the coefficients that it goes with. */
function observedTerms({ usual }: Groups) {
  return (each: IngestObservation): Record<string, number> => {
    const { requests, commits, seconds, shape, rawBytes, viaEdge, deployment } = each;
    return {
      requests,
      "direct requests": deployment === "single" || viaEdge ? 0 : requests,
      commits,
      flushes: knownFlushes(each) ?? gatheredBy(usual, loadOf(each)).flushes * seconds,
      seconds,
      [byteTerm(shape)]: rawBytes,
    };
  };
}

/** In a cluster each flush is a PUT, and in staged mode each commit is one more. Undefined where it was not counted. */
function knownFlushes({ deployment, storeRequests, commits, tables, flushes }: IngestObservation): number | undefined {
  if (flushes !== undefined) return flushes;
  const puts = storeRequests["put"] ?? 0;
  if (deployment === "sync" && puts > 0) return puts;
  if (deployment === "staged" && puts > commits) return puts - commits;
  return tables === 1 ? commits : undefined;
}

type ShapeFactor = (shape: string) => { shape: string; factor: number };

function amountTerms(amount: IngestAmount, factorOf: ShapeFactor): Record<string, number> {
  const { requests, commits, flushes, seconds, bytes } = amount;
  const { shape, factor } = factorOf(amount.shape);
  return { requests, commits, flushes, seconds, [byteTerm(shape)]: bytes * factor };
}

/**
 * In a cluster not every shape is measured: one that was not costs as much more than the one that was as it does in one
 * process.
 */
function shapeFactors(costs: Costs, measured: readonly string[]): ShapeFactor {
  return (shape) => {
    if (measured.includes(shape)) return { shape, factor: 1 };
    const perByte = (name: string | undefined) => {
      const own = costs.ingest.filter((each) => each.deployment === "single" && each.shape === name);
      const largest = Math.max(...own.map(({ bodyBytes }) => bodyBytes));
      const used = own.filter(({ bodyBytes }) => bodyBytes === largest);
      return sum(used, ({ cpuSeconds }) => cpuSeconds.server ?? 0) / sum(used, ({ rawBytes }) => rawBytes);
    };
    const [basis = ""] = measured;
    const factor = perByte(shape) / perByte(basis);
    if (!Number.isFinite(factor)) throw unknownShape(costs, shape);
    return { shape: basis, factor };
  };
}

function unknownShape({ ingest }: Costs, shape: string): Error {
  const there = [...new Set(ingest.map((each) => each.shape))].join(", ");
  return new Error(`the costs know no rows of the shape ${shape}; take the nearest of ${there}`);
}

/**
 * Group commit: what arrives while a flush or a commit is under way gathers for the next one. So the requests of one are
 * those of a span, which grows with the bodies; in a crowd they are those that wait. A flush has the requests of one
 * table, a commit the flushes of all.
 */
type Groups = { usual: Gathering; crowded: Gathering };

/** Requests of one commit and of one flush, by the terms of a load. */
type Gathering = { commits: Fit; flushes: Fit; termsOf: (load: GatheredLoad) => Record<string, number> };

/** `ENGINE_FLUSH_MAX_ROWS` as it comes. */
const FLUSH_MAX_ROWS = 8_000;

function groupsOf(all: readonly IngestObservation[]): Groups {
  // A lone client's requests never meet.
  const several = orAll(all, ({ clients }) => clients > 1);
  return {
    usual: gathering(several, ["one", "rate", "rateBytes"], ({ requestsPerSecond: rate, bodyBytes }) => ({
      one: 1,
      rate,
      rateBytes: rate * bodyBytes,
    })),
    crowded: gathering(
      orAll(several, ({ offeredPerSecond }) => offeredPerSecond === null),
      ["one", "waiting"],
      ({ clients, rowsPerRequest }) => ({
        one: 1,
        waiting: Math.min(clients, Math.max(1, FLUSH_MAX_ROWS / rowsPerRequest)),
      }),
    ),
  };
}

function gathering(
  all: readonly IngestObservation[],
  names: readonly string[],
  termsOf: Gathering["termsOf"],
): Gathering {
  const fitOf = (count: (each: IngestObservation) => number | undefined) =>
    fit(
      all.flatMap((each): FitPoint[] => {
        const groups = count(each);
        return groups === undefined
          ? []
          : [{ terms: termsOf(loadOf(each)), value: each.requests / Math.max(1, groups) }];
      }),
      names,
    );
  return { commits: fitOf(({ commits }) => commits), flushes: fitOf(knownFlushes), termsOf };
}

/** Those that are wanted; all where there are none. */
function orAll<T>(values: readonly T[], wanted: (value: T) => boolean): readonly T[] {
  const some = values.filter(wanted);
  return some.length === 0 ? values : some;
}

function loadOf({ requests, seconds, rows, bodyBytes, tables, clients }: IngestObservation): GatheredLoad {
  return { requestsPerSecond: requests / seconds, bodyBytes, rowsPerRequest: rows / requests, tables, clients };
}

function gatheredBy({ commits, flushes, termsOf }: Gathering, load: GatheredLoad) {
  const groups = (one: Fit, own: GatheredLoad) =>
    own.requestsPerSecond / Math.max(1, Math.min(own.clients, valueOf(one.coefficients, termsOf(own))));
  const { requestsPerSecond, clients, tables } = load;
  // Each table has its part of the requests and of the clients.
  const ofTable = { ...load, requestsPerSecond: requestsPerSecond / tables, clients: clients / tables };
  return { commits: groups(commits, load), flushes: tables * groups(flushes, ofTable) };
}

const LITTLE_TO_DO = 0.45;

/** Of the loads that left the machine most of its time; of all where there is none. Seconds. */
function latencyFit(costs: Costs, all: readonly IngestObservation[], which: "p50" | "p99"): Fit {
  const cores = coresOf(costs);
  const isQuiet = ({ cpuSeconds, seconds }: IngestObservation) =>
    sum(Object.values(cpuSeconds), (busy) => busy) / seconds / cores < LITTLE_TO_DO;
  return lineFit(orAll(all, isQuiet), ({ bodyBytes, latencyMs }) => [bodyBytes, latencyMs[which] / 1_000]);
}

/** A fixed part and one by the bytes. */
function lineFit<T>(all: readonly T[], pointOf: (each: T) => readonly [bytes: number, value: number]): Fit {
  const points = all.map((each) => {
    const [bytes, value] = pointOf(each);
    return { terms: { one: 1, bytes }, value };
  });
  return fit(points, ["one", "bytes"]);
}

function atBytes({ coefficients }: Fit, bytes: number): number {
  return valueOf(coefficients, { one: 1, bytes });
}

/** That the observations were made on. */
function coresOf({ machine }: Costs): number {
  return machine.cpuQuota ?? machine.cores;
}

/** Of the runs of a shape, per raw byte; of all where there is none of it. */
function ratioOf<T extends { shape: string; rawBytes: number }>(
  all: readonly T[],
  shape: string,
  of: (each: T) => number,
): number {
  const used = orAll(all, (each) => each.shape === shape);
  return sum(used, of) / sum(used, ({ rawBytes }) => rawBytes);
}

function queryCosts(costs: Costs, queryClass: QueryClass, speed: number): QueryCosts {
  const own = costs.queries.filter((each) => each.class === queryClass);
  if (own.length === 0)
    throw new Error(`the costs have no query of the class ${queryClass}; measure it, or take another class`);
  const fits = (value: (each: QueryObservation) => number) => {
    const of = (isCached: boolean) =>
      lineFit(
        orAll(own, (each) => each.isCached === isCached),
        (each) => [each.rangeBytes, value(each)],
      );
    return { hit: of(true), miss: of(false) };
  };
  const cpu = fits(({ cpuSeconds }) => cpuSeconds);
  const p50 = fits(({ latencyMs }) => latencyMs.p50 / 1_000);
  const p99 = fits(({ latencyMs }) => latencyMs.p99 / 1_000);
  const mixed = ({ hit, miss }: typeof cpu, bytes: number, cached: number) =>
    cached * atBytes(hit, bytes) + (1 - cached) * atBytes(miss, bytes);
  const measuredCores = coresOf(costs);
  const ranges = own.map(({ rangeBytes }) => rangeBytes);
  return {
    cpu: (bytes, cached) => mixed(cpu, bytes, cached) / speed,
    latency: (bytes, cached, cores) => {
      const work = mixed(cpu, bytes, cached);
      const scaled = (wall: number) => onCores({ wall, work, measuredCores, cores }) / speed;
      return { p50: scaled(mixed(p50, bytes, cached)), p99: scaled(mixed(p99, bytes, cached)) };
    },
    errorP90: Math.max(cpu.hit.errorP90, cpu.miss.errorP90),
    peakBytes: Math.max(...own.map(({ peakBytes }) => peakBytes)),
    rangeBytes: { least: Math.min(...ranges), most: Math.max(...ranges) },
  };
}

/** Amdahl's law: the part of a query that took no second core takes none elsewhere. */
function onCores({
  wall,
  work,
  measuredCores,
  cores,
}: Record<"wall" | "work" | "measuredCores" | "cores", number>): number {
  if (measuredCores <= 1) return wall;
  const serial = Math.min(wall, Math.max(0, (measuredCores * wall - work) / (measuredCores - 1)));
  return serial + ((wall - serial) * measuredCores) / cores;
}

function compactionCosts(costs: Costs, shape: string, speed: number): CompactionCosts {
  if (costs.compaction.length === 0) throw new Error("the costs have no run of compaction; measure them again");
  return {
    cpuPerRawByte: ratioOf(costs.compaction, shape, ({ cpuSeconds }) => cpuSeconds) / speed,
    writtenPerRawByte: ratioOf(costs.compaction, shape, ({ writtenBytes }) => writtenBytes),
    storedPerRawByte: ratioOf(costs.compaction, shape, ({ storedAfterBytes }) => storedAfterBytes),
    peakBytes: Math.max(...costs.compaction.map(({ peakBytes }) => peakBytes)),
  };
}

function jobCpu({ jobs }: Costs): number {
  if (jobs.length === 0) throw new Error("the costs have no run of jobs; measure them again");
  return sum(jobs, ({ cpuSeconds }) => cpuSeconds) / sum(jobs, (each) => each.jobs);
}

function sum<T>(values: readonly T[], of: (value: T) => number): number {
  return values.reduce((total, value) => total + of(value), 0);
}
