/** An edge and its peers as processes of their own. */
import { ingest, query, rowsOf } from "../support/client.ts";
import { startEngine, temporaryHome, type Engine } from "../support/engine.ts";

const closers: (() => Promise<unknown>)[] = [];

/** Called when the test ends, the last first. */
export function defer(close: () => Promise<unknown>): void {
  closers.push(close);
}

export async function stopAll(): Promise<void> {
  for (const close of closers.splice(0).toReversed()) await close();
}

export async function start(env: Record<string, string>, port = 0, home?: string): Promise<Engine> {
  const folder = home === undefined ? await temporaryHome() : { home, remove: () => Promise.resolve() };
  const engine = await startEngine({ home: folder.home, env, port });
  defer(async () => {
    await engine.stop("SIGKILL");
    await folder.remove();
  });
  return engine;
}

export function startEdge(peers: readonly string[], env: Record<string, string> = {}): Promise<Engine> {
  const urls = peers.join(",");
  return start({ ENGINE_ROLES: "edge", ENGINE_QUERY_PEERS: urls, ENGINE_INGEST_PEERS: urls, ...env });
}

export const metricsOf = async (engine: Engine) => (await fetch(`${engine.url}/metrics`)).text();
export const usablePeers = async (edge: Engine) =>
  (await metricsOf(edge)).match(/^engine_edge_peer_usable\{.*\} 1$/gm)?.length ?? 0;
export const portOf = (engine: Engine) => Number(new URL(engine.url).port);

/** Clients that send ingests and queries, one after the other, until they are told to stop; and what was not a 200. */
export function keepAsking(edge: Engine, clients: number, headers: (n: number) => Record<string, string>) {
  const state = { running: true, acknowledged: 0, queried: 0, failures: [] as string[] };
  const client = async (): Promise<void> => {
    while (state.running) {
      const n = state.acknowledged + state.queried;
      const isIngest = n % 2 === 0;
      const sent = isIngest ? ingest(edge.url, "t", '{"body":"x"}\n', headers(n)) : query(edge.url, "SELECT 1 AS one");
      const outcome = await sent.then(
        ({ status, text }) => (status === 200 ? undefined : `${status} ${text}`),
        (error: unknown) => String(error),
      );
      if (outcome !== undefined) state.failures.push(`${isIngest ? "ingest" : "query"}: ${outcome}`);
      else if (isIngest) state.acknowledged++;
      else state.queried++;
    }
  };
  const done = Promise.all(Array.from({ length: clients }, client));
  return {
    state,
    stop: async () => {
      state.running = false;
      await done;
    },
  };
}

export const countRows = async (engine: Engine) =>
  Number((await rowsOf(engine.url, "SELECT count(*) AS n FROM t"))[0]?.["n"]);
