import { setTimeout as delay } from "node:timers/promises";
import type { Random } from "../../src/core/random.ts";
import { KILL_GRACE_MS, LEASE_MS, type ChaosCluster } from "./chaos-cluster.ts";
import type { Member, NodeMember } from "./chaos-member.ts";
import { machinesThatRun } from "./chaos-remains.ts";

export type StrikePorts = {
  cluster: ChaosCluster;
  random: Random;
  problems: string[];
  say: (line: string) => void;
};

/** What may befall processes, and how often it is drawn; every run begins with one of each. */
const SHARES = {
  "node killed": 3,
  "node lost": 0,
  "control plane killed": 2,
  "node killed twice": 1,
  "control plane killed twice": 1,
  "node and control plane killed": 1,
  "every control plane killed": 1,
  "every control plane lost": 0,
} as const;
type Kind = keyof typeof SHARES;
const KINDS = Object.keys(SHARES) as Kind[];
const DRAWN = KINDS.flatMap((kind) => Array.from({ length: SHARES[kind] }, () => kind));
/** These take much longer than the others: it is one of them once in so many strikes. */
const LOSSES: readonly Kind[] = ["node lost", "every control plane lost"];
const LOSS_EVERY = 20;

const PAUSE_MS = { least: 200, spread: 1_000 };
const DOWN_MS = { least: 50, spread: 1_000 };
const AGAIN_WITHIN_MS = 1_500;
/** Until sandboxes are lost. */
const AWAY_MS = { least: LEASE_MS + KILL_GRACE_MS + 1_000, spread: 2_000 };

/** Kills processes with -9 and starts them again, by a plan that is drawn. The last of the nodes is spared. */
export class Strikes {
  /** Strikes, by what they were. */
  readonly counts: Record<string, number> = {};
  readonly #ports: StrikePorts;
  /** Those that nothing befalls at this moment. */
  readonly #atEase: Set<Member>;
  readonly #nodesAway: Promise<void>[] = [];
  #kills = 0;

  constructor(ports: StrikePorts) {
    this.#ports = ports;
    const { nodes, controlPlanes } = ports.cluster;
    this.#atEase = new Set([...nodes.slice(0, -1), ...controlPlanes]);
  }

  /** Processes that were killed. */
  get kills(): number {
    return this.#kills;
  }

  /** Kills at least so many processes; resolves when all of them are up again. */
  async run(kills: number): Promise<void> {
    const { random } = this.#ports;
    for (let n = 0; this.#kills < kills; n++) {
      await delay(PAUSE_MS.least + random.next() * PAUSE_MS.spread);
      await this.#strike(KINDS[n] ?? this.#draw(n));
    }
    await Promise.all(this.#nodesAway);
  }

  /** Kills every node but the spared one, and a control plane, at once. */
  async last(): Promise<void> {
    const { nodes, controlPlanes } = this.#ports.cluster;
    const victims = [...nodes.slice(0, -1), ...controlPlanes.slice(0, 1)];
    this.#tell("killed at last", victims);
    await this.#kill(victims);
    await delay(DOWN_MS.spread / 2);
    await this.#restart(victims);
  }

  #draw(n: number): Kind {
    const all = n % LOSS_EVERY === 0 ? LOSSES : DRAWN;
    return all[Math.floor(this.#ports.random.next() * all.length)] ?? "node killed";
  }

  /** Resolves when it is over, but for a node that stays away while others are struck. */
  async #strike(kind: Kind): Promise<void> {
    const { random } = this.#ports;
    const victims = this.#victimsOf(kind);
    if (victims.length === 0) return;
    this.#tell(kind, victims);
    if (kind === "node lost") {
      this.#nodesAway.push(this.#lose(victims));
      return;
    }
    await this.#kill(victims);
    if (kind.endsWith("twice")) {
      const starting = Promise.allSettled(victims.map((victim) => victim.start()));
      await delay(random.next() * AGAIN_WITHIN_MS);
      await this.#kill(victims);
      await starting;
    }
    const downMs = kind.endsWith("lost") ? AWAY_MS : DOWN_MS;
    await delay(downMs.least + random.next() * downMs.spread);
    await this.#restart(victims);
  }

  /** A node comes back when others have taken note; its machines have ended by themselves before. */
  async #lose(victims: readonly Member[]): Promise<void> {
    const { cluster, random, problems } = this.#ports;
    const nodes = cluster.nodes.filter((node) => victims.includes(node));
    await this.#kill(victims);
    await delay(AWAY_MS.least);
    for (const node of nodes) await this.#checkEnded(node, problems);
    await delay(random.next() * AWAY_MS.spread);
    await this.#restart(victims);
  }

  async #checkEnded(node: NodeMember, problems: string[]): Promise<void> {
    for (const machine of await machinesThatRun(node)) {
      problems.push(`runs on ${AWAY_MS.least} ms after ${node.name} was killed: ${machine}`);
    }
  }

  #victimsOf(kind: Kind): Member[] {
    const { cluster, random } = this.#ports;
    const free = (all: readonly Member[]) => all.filter((one) => this.#atEase.has(one));
    const one = (all: readonly Member[]) => all.slice(Math.floor(random.next() * all.length)).slice(0, 1);
    const [nodes, planes] = [free(cluster.nodes), free(cluster.controlPlanes)];
    if (kind.startsWith("every")) return planes;
    return [...(kind.includes("node") ? one(nodes) : []), ...(kind.includes("control plane") ? one(planes) : [])];
  }

  async #kill(victims: readonly Member[]): Promise<void> {
    this.#kills += victims.length;
    for (const victim of victims) this.#atEase.delete(victim);
    await Promise.all(victims.map((victim) => victim.kill()));
  }

  async #restart(victims: readonly Member[]): Promise<void> {
    await Promise.all(victims.map((victim) => victim.start()));
    for (const victim of victims) this.#atEase.add(victim);
  }

  #tell(what: string, victims: readonly Member[]): void {
    this.counts[what] = (this.counts[what] ?? 0) + 1;
    this.#ports.say(`${what}: ${victims.map(({ name }) => name).join(", ")}`);
  }
}
