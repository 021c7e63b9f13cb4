import { quantile } from "../../src/capacity/quantile.ts";
import { loadPeer } from "./install.ts";

/**
 * The process in which autocannon runs. Its command line would do but for its latencies, which are whole milliseconds:
 * here they are what it measured of every response.
 */

/** Options of autocannon's that we use. */
export type AutocannonPlan = {
  url: string;
  method: "GET" | "POST";
  headers: Readonly<Record<string, string>>;
  body?: string;
  connections: number;
  /** Seconds. */
  duration: number;
  /** Requests a second over all connections; without it, each sends when its last was answered. */
  overallRate?: number;
};

export type AutocannonRun = { perSecond: number; p50Ms: number; cpuSeconds: number; seconds: number };

/** What we use of the package. */
type Autocannon = (
  plan: AutocannonPlan,
  done: (error: Error | null, result: AutocannonResult) => void,
) => AutocannonLoad;
type AutocannonResult = { duration: number; "2xx": number; non2xx: number; errors: number; timeouts: number };
type AutocannonLoad = {
  on(event: "response", listener: (client: unknown, status: number, bytes: number, ms: number) => void): void;
};

async function run(plan: AutocannonPlan): Promise<AutocannonRun> {
  const autocannon = loadPeer("autocannon") as Autocannon;
  const latencies: number[] = [];
  const before = process.cpuUsage();
  const {
    duration,
    errors,
    timeouts,
    non2xx,
    "2xx": accepted,
  } = await new Promise<AutocannonResult>((resolve, reject) => {
    const load = autocannon(plan, (error, result) => (error === null ? resolve(result) : reject(error)));
    load.on("response", (_client, _status, _bytes, ms) => latencies.push(ms));
  });
  if (errors + timeouts + non2xx > 0) throw new Error(`${errors + timeouts + non2xx} requests of autocannon failed`);
  const { user, system } = process.cpuUsage(before);
  return {
    perSecond: accepted / duration,
    p50Ms: quantile(Float64Array.from(latencies).sort(), 0.5),
    cpuSeconds: (user + system) / 1e6,
    seconds: duration,
  };
}

console.log(JSON.stringify(await run(JSON.parse(process.argv[2] ?? "") as AutocannonPlan)));
