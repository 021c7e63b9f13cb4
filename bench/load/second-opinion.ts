import { fileURLToPath } from "node:url";
import { z } from "zod";
import { availableCores } from "../../src/core/available-cores.ts";
import { runAutocannon } from "../peers/autocannon.ts";
import type { AutocannonPlan } from "../peers/autocannon-child.ts";
import { installPeers } from "../peers/install.ts";
import { startBenchServer } from "../support/server.ts";
import { synthetic } from "../support/shapes.ts";
import { defineBenchmark, type BenchContext } from "../suite/benchmark.ts";
import { openLoad, type Load } from "./drive/drive-load.ts";
import { readProfile } from "./profiles/profile.ts";

/** What both send to a route. */
type Route = {
  profile: string;
  request: (seed: number) => Pick<AutocannonPlan, "method" | "headers" | "body"> & { path: string };
};

const ROUTES = {
  row: {
    profile: "ingest-one-row",
    request: (seed) => ({
      method: "POST",
      path: "/v1/ingest",
      headers: { "X-Table": "load_0", "Content-Type": "application/x-ndjson" },
      body: synthetic("logs", 1, seed).ndjson.toString(),
    }),
  },
  one: {
    profile: "query-one",
    request: () => ({
      method: "POST",
      path: "/v1/query",
      headers: { "Content-Type": "application/sql" },
      body: "SELECT 1 AS one",
    }),
  },
  health: { profile: "health", request: () => ({ method: "GET", path: "/health", headers: {} }) },
} as const satisfies Record<string, Route>;

type RouteName = keyof typeof ROUTES;
const ROUTE_NAMES = Object.keys(ROUTES) as RouteName[];
const NAMED: Readonly<Record<RouteName, string>> = { row: "one row a request", one: "SELECT 1", health: "/health" };

/** Clients that keep the server busy. */
const CROWD = 8;
/** Of the rate at which the crowd is answered: it leaves room for either generator. */
const FIXED_SHARE = 0.5;

/** One run of a generator over one route. */
type Shot = { clients: number; perSecond?: number };
type Shown = { perSecond: number; p50Ms: number; generatorShare: number };
type Generator = (route: RouteName, shot: Shot) => Promise<Shown>;

export const benchmark = defineBenchmark({
  name: "load/second-opinion",
  question: "Does our load generator see of a server what autocannon sees?",
  notMeasured:
    "Large bodies, mixes, stalls. Autocannon takes more CPU for a request, so where the cores are shared and all busy " +
    "(Crowd) its rate is lower. It keeps a rate by bursts at the begin of each second, so its waits at a fixed rate " +
    "(FixedWait) are those of a burst; ours are of even arrivals.",
  options: z.strictObject({
    seconds: z.coerce.number().positive().default(3).describe("for each of nine runs in a round and side"),
  }),
  measures: Object.assign({}, ...ROUTE_NAMES.map(measuresOf)) as ReturnType<typeof measuresOf>,
  rounds: 5,
  open: async ({ seconds }, context) => {
    installPeers();
    const server = await startBenchServer({ entry: context.entry });
    const loads = new Map<RouteName, Load>();
    const close = async () => {
      for (const load of loads.values()) await load.close();
      await server.stop();
    };
    try {
      for (const route of ROUTE_NAMES) loads.set(route, await loadOf(route, server.url, context));
      const fixed = new Map<RouteName, number>();
      const sideOf = (name: string, generator: Generator) => ({
        name,
        round: async () => await measured(generator, fixed),
        processes: () => ({ server: server.pid }),
      });
      const autocannon = autocannonOver(server.url, seconds, context);
      return { sides: [sideOf("ours", oursOver(loads, seconds)), sideOf("autocannon", autocannon)], close };
    } catch (error) {
      await close();
      throw error;
    }
  },
});

function measuresOf(route: RouteName) {
  const rate = { unit: "/s", better: "more" } as const;
  const wait = { unit: "ms", better: "less" } as const;
  const what = NAMED[route];
  return {
    [`${route}Crowd`]: { ...rate, doc: `${what}, ${CROWD} clients in a closed loop` },
    [`${route}Generator`]: { unit: "%", better: "less", doc: "of the machine that the generator took for that" },
    [`${route}Alone`]: { ...wait, doc: `${what}, one client in a closed loop: median; target: within 5 %` },
    [`${route}Fixed`]: { ...rate, doc: `${what}, at half of our crowd's rate: answered; target: within 5 %` },
    [`${route}FixedWait`]: { ...wait, doc: "at that rate, from first byte to answer: median" },
  } as const;
}

async function loadOf(route: RouteName, url: string, { seed, signal }: BenchContext): Promise<Load> {
  const path = fileURLToPath(new URL(`./profiles/${ROUTES[route].profile}.toml`, import.meta.url));
  const profile = await readProfile(path);
  const own = profile.ingest === undefined ? {} : { ingest: { ...profile.ingest, keys: false } };
  return await openLoad({ url, profile: { ...profile, arrivals: "even", ...own }, seed, signal, processes: 1 });
}

/** All routes; the rate that is fixed is the one that the first round found, for both sides. */
async function measured(generator: Generator, fixed: Map<RouteName, number>): Promise<Record<string, number>> {
  const values: Record<string, number> = {};
  for (const route of ROUTE_NAMES) {
    const crowd = await generator(route, { clients: CROWD });
    values[`${route}Crowd`] = crowd.perSecond;
    values[`${route}Generator`] = crowd.generatorShare * 100;
    values[`${route}Alone`] = (await generator(route, { clients: 1 })).p50Ms;
    const perSecond = fixed.get(route) ?? Math.max(1, Math.ceil(crowd.perSecond * FIXED_SHARE));
    fixed.set(route, perSecond);
    const steady = await generator(route, { clients: CROWD, perSecond });
    values[`${route}Fixed`] = steady.perSecond;
    values[`${route}FixedWait`] = steady.p50Ms;
  }
  return values;
}

function oursOver(loads: ReadonlyMap<RouteName, Load>, seconds: number): Generator {
  return async (route, { clients, perSecond }) => {
    const rate = perSecond === undefined ? "closed" : { perSecond };
    const run = await loads.get(route)?.run({ rate, clients, durationMs: seconds * 1_000 });
    if (run === undefined) throw new Error(`there is no load of ${route}`);
    if (run.failed + run.refused > 0) throw new Error(`requests failed or were refused: ${run.firstFailure ?? "429"}`);
    return { perSecond: run.achievedPerSecond, p50Ms: run.serviceMs.p50, generatorShare: run.generatorShare };
  };
}

function autocannonOver(url: string, duration: number, { seed, signal }: BenchContext): Generator {
  return async (route, { clients: connections, perSecond }) => {
    const { path, ...request } = ROUTES[route].request(seed);
    const rate = perSecond === undefined ? {} : { overallRate: perSecond };
    const plan = { ...request, ...rate, url: `${url}${path}`, connections, duration };
    const run = await runAutocannon(plan, signal);
    return { ...run, generatorShare: run.cpuSeconds / (run.seconds * availableCores()) };
  };
}
