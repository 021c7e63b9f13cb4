import { z } from "zod";
import { NO_FSYNC, startTestServer, type TestServer } from "../../src/catalog/postgres/postgres.test-kit.ts";
import { firstHostIdOf, makeNode, makeServer, type Member, type NodeMember, type Span } from "./chaos-member.ts";

export type ChaosClusterOptions = {
  folder: string;
  nodes: number;
  /** Where PostgreSQL's programs are. */
  postgres: string | undefined;
};

/** The shortest that there is. */
export const LEASE_MS = 10_000;
export const KILL_GRACE_MS = 3_000;
/** A node renews a lease when a third of it has passed: what is away for longer than the rest may have lost it. */
const MAY_LOSE_MS = (LEASE_MS * 2) / 3 - 1_000;
/** The edge looks every so often whether a server is back. */
const EDGE_LOOKS_MS = 2_500;

const OF_SERVERS = {
  ENGINE_SANDBOX_RUNTIME: "off",
  ENGINE_SANDBOX_LEASE_SECS: String(LEASE_MS / 1_000),
  ENGINE_SANDBOX_CREATES_PER_MINUTE: "1000000",
  ENGINE_SANDBOX_CREATE_BURST: "100000",
  ENGINE_DRAIN_NOTICE_SECS: "0",
};
const OF_NODES = {
  ENGINE_SANDBOX_WARM_POOL: "1",
  ENGINE_SANDBOX_KILL_GRACE_SECS: String(KILL_GRACE_MS / 1_000),
  // Only promised: these sandboxes use next to nothing.
  ENGINE_SANDBOX_DISK_BYTES: String(2 ** 42),
  ENGINE_SANDBOX_CPUS: "1000",
};

/**
 * A cluster that runs sandboxes, as processes of their own: two control planes on one PostgreSQL with an edge before
 * them, and nodes that ask the edge and keep a connection to each control plane. Without PostgreSQL there is one control
 * plane, on a catalog in a file, which the nodes ask themselves.
 */
export class ChaosCluster {
  readonly controlPlanes: Member[] = [];
  readonly nodes: NodeMember[] = [];
  /** Of the control planes, for clients. */
  readonly urls: string[] = [];
  readonly #folder: string;
  #edge: Member | undefined;
  #postgres: TestServer | undefined;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** Rejects, with nothing left running, when a part does not come up. */
  static async start({ folder, nodes, postgres }: ChaosClusterOptions): Promise<ChaosCluster> {
    const cluster = new ChaosCluster(folder);
    try {
      const serverUrl = await cluster.#startServers(postgres);
      await cluster.#startNodes(serverUrl, nodes);
      return cluster;
    } catch (error) {
      await cluster.kill();
      throw error;
    }
  }

  /** Whether a sandbox of that node may have been lost since then; of any node where that is not known. */
  mayHaveLost(nodeName: string | undefined, sinceMs: number): boolean {
    const nodes = this.nodes.filter(({ name }) => nodeName === undefined || name === nodeName);
    const nodesAway = nodes.flatMap((node) => node.awaySince(sinceMs));
    // Without any control plane, or the edge's knowing of one, no lease is renewed.
    const unheard = this.controlPlanes
      .map((one) => one.awaySince(sinceMs).map(({ fromMs, toMs }) => ({ fromMs, toMs: toMs + EDGE_LOOKS_MS })))
      .reduce(overlaps);
    return [...nodesAway, ...unheard].some(({ fromMs, toMs }) => toMs - fromMs >= MAY_LOSE_MS);
  }

  /** Since when all of it is up; infinite while it is not. */
  get upSinceMs(): number {
    return Math.max(...[...this.controlPlanes, ...this.nodes].map((one) => one.upSinceMs));
  }

  /** Ends the nodes as an operator does; resolves to how each ended. */
  async stopNodes(): Promise<(number | null)[]> {
    return await Promise.all(this.nodes.map(({ program }) => program.stop()));
  }

  /** Ends every process of the cluster; what runs in sandboxes is not its. */
  async kill(): Promise<void> {
    const edges = this.#edge === undefined ? [] : [this.#edge];
    await Promise.all([...this.nodes, ...edges, ...this.controlPlanes].map((one) => one.kill()));
    await this.#postgres?.stop();
  }

  /** Resolves to the address for nodes. */
  async #startServers(postgres: string | undefined): Promise<string> {
    if (postgres === undefined) {
      await this.#startControlPlanes(1, OF_SERVERS);
      return this.urls[0] ?? "";
    }
    this.#postgres = await startTestServer(postgres, NO_FSYNC);
    const ENGINE_CATALOG_URL = await this.#postgres.createDatabase();
    await this.#startControlPlanes(2, { ...OF_SERVERS, ENGINE_CATALOG_URL, ENGINE_ROLES: "query,worker" });
    const peers = this.urls.join(",");
    const env = { ENGINE_ROLES: "edge", ENGINE_QUERY_PEERS: peers, ENGINE_INGEST_PEERS: peers };
    const { member, url } = await makeServer("edge", this.#folder, env);
    this.#edge = member;
    await member.start();
    return url;
  }

  async #startControlPlanes(count: number, env: Readonly<Record<string, string>>): Promise<void> {
    for (let n = 1; n <= count; n++) {
      const { member, url } = await makeServer(`control-plane-${n}`, this.#folder, env);
      this.controlPlanes.push(member);
      this.urls.push(url);
      // The first one makes the tables.
      await member.start();
    }
  }

  async #startNodes(serverUrl: string, count: number): Promise<void> {
    for (let n = 1; n <= count; n++) {
      const name = `node-${n}`;
      const place = { name, folder: this.#folder, serverUrl, token: await admit(serverUrl, name) };
      this.nodes.push(makeNode({ ...place, firstHostId: firstHostIdOf(n) }, OF_NODES));
    }
    await Promise.all(this.nodes.map((node) => node.start()));
  }
}

function overlaps(one: readonly Span[], other: readonly Span[]): Span[] {
  const both = one.flatMap((a) =>
    other.map((b) => ({ fromMs: Math.max(a.fromMs, b.fromMs), toMs: Math.min(a.toMs, b.toMs) })),
  );
  return both.filter(({ fromMs, toMs }) => toMs > fromMs);
}

async function admit(url: string, name: string): Promise<string> {
  const answer = await fetch(`${url}/v1/workers`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ name, capabilities: ["sandbox"] }),
  });
  return z.object({ token: z.string() }).parse(await answer.json()).token;
}
