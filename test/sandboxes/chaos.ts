import { mkdtempSync, realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeUnmounted } from "../../src/sandbox/runtime/removal.test-kit.ts";
import { setTimeout as delay } from "node:timers/promises";
import { seededRandom, type Random } from "../../src/core/random.ts";
import { ChaosClient } from "./chaos-client.ts";
import { ChaosCluster, LEASE_MS } from "./chaos-cluster.ts";
import { Lives, type LifeCounts, type Subject } from "./chaos-lives.ts";
import type { NodeMember } from "./chaos-member.ts";
import { figuresOf, machinesOf, remainsOf, sweepRemains, type Figures } from "./chaos-remains.ts";
import { Strikes } from "./chaos-strikes.ts";
import { SettleWatch } from "./chaos-watch.ts";

/**
 * Sandboxes of a cluster of processes, made and deleted, paused and stopped, with commands and events that are followed
 * over connections that are cut, while nodes and control planes are killed with -9, by a plan that is drawn from a seed.
 * Then all of it has to be settled, everything is deleted, and nothing may be left.
 */
export type SandboxChaosOptions = {
  /** At least so many processes are killed, sandboxes made, and streams cut. */
  kills: number;
  creates: number;
  disconnects: number;
  seed: number;
  /** Where PostgreSQL's programs are; without, the catalog is a file of the one control plane. */
  postgres: string | undefined;
  /** Takes a line for each event. */
  say?: (line: string) => void;
};

export type SandboxChaosReport = LifeCounts & {
  problems: string[];
  kills: number;
  disconnects: number;
  /** What befell processes, by what it was. */
  strikes: Record<string, number>;
  /** The longest that a sandbox was on its way from one state to another while all of the cluster was up. */
  settledMs: number;
  /** From the last deletion until the nodes had nothing left. */
  clearedMs: number;
  /** Of the node that is spared: idle at first, after a tenth of the sandboxes, idle in the end. */
  figures: Figures[];
  /** Where the logs are, which are kept when there are problems. */
  folder: string;
};

const NODES = 3;
/** Sandboxes that come and go at once. */
const LIVES = 8;
/** Sandboxes that are made before the first kill. */
const FIRST_CREATES = 16;
const SETTLED_WITHIN_MS = LEASE_MS + 5_000;
const GIVE_UP_MS = 60_000;
const CLEARED_WITHIN_MS = 30_000;
const [LOOK_MS, MOST_LOOKS] = [100, 30];
const MORE_DESCRIPTORS = 12;
const MORE_MIB = 64;

const MOVES = ["pause", "resume", "stop", "start"] as const;
type Move = (typeof MOVES)[number];
const LAST_COMMAND = { lines: 40, everyMs: 100 };
/** In which what is asked for has begun, and has not ended. */
const LAST_AFTER_MS = 50;
/** Processes that the last kill takes. */
const LAST_KILLS = 3;

/** Runs it all; what does not hold is in `problems`. Rejects when the processes cannot be started at all. */
export async function runSandboxChaos(options: SandboxChaosOptions): Promise<SandboxChaosReport> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "engine-sandboxes-")));
  let report: SandboxChaosReport | undefined;
  let cluster: ChaosCluster | undefined;
  try {
    cluster = await ChaosCluster.start({ folder, nodes: NODES, postgres: options.postgres });
    report = await new ChaosRun(options, cluster, folder).run();
    return report;
  } finally {
    await cluster?.kill();
    for (const node of cluster?.nodes ?? []) await sweepRemains(node);
    if (report?.problems.length === 0) await removeUnmounted(folder);
  }
}

class ChaosRun {
  readonly #options: SandboxChaosOptions;
  readonly #cluster: ChaosCluster;
  readonly #folder: string;
  readonly #problems: string[] = [];
  readonly #client: ChaosClient;
  readonly #lives: Lives;
  readonly #strikes: Strikes;
  readonly #watch: SettleWatch;
  readonly #figures: Figures[] = [];
  #settledMs = 0;

  constructor(options: SandboxChaosOptions, cluster: ChaosCluster, folder: string) {
    const { seed } = options;
    this.#options = options;
    this.#cluster = cluster;
    this.#folder = folder;
    const problems = this.#problems;
    this.#client = new ChaosClient(cluster.urls, seededRandom(seed + 1), problems);
    this.#lives = new Lives({ client: this.#client, cluster, seed, problems });
    const say = (line: string) => options.say?.(`${(performance.now() / 1_000).toFixed(1)} s: ${line}`);
    this.#strikes = new Strikes({ cluster, random: seededRandom(seed + 2), problems, say });
    this.#watch = new SettleWatch(this.#client, cluster);
  }

  async run(): Promise<SandboxChaosReport> {
    await this.#measure();
    const residents = await this.#underLoad();
    const all = await this.#finale(residents);
    const clearedMs = await this.#clear(all);
    await this.#measure();
    this.#checkFigures();
    await this.#checkRemains();
    const { disconnects } = this.#options;
    if (this.#client.cuts < disconnects) this.#problems.push(`only ${this.#client.cuts} streams were cut`);
    return {
      ...this.#lives.counts,
      problems: this.#problems,
      kills: this.#strikes.kills,
      disconnects: this.#client.cuts,
      strikes: this.#strikes.counts,
      settledMs: this.#settledMs,
      clearedMs,
      figures: this.#figures,
      folder: this.#folder,
    };
  }

  /** The spared one is the last. */
  get #spared(): NodeMember {
    const node = this.#cluster.nodes.at(-1);
    if (node === undefined) throw new Error("there are no nodes");
    return node;
  }

  /** Resolves to what is still there. */
  async #underLoad(): Promise<Subject[]> {
    const { creates, disconnects, kills } = this.#options;
    let isStruck = false;
    const isEnough = () => isStruck && this.#lives.counts.creates >= creates && this.#client.cuts >= disconnects;
    const names = this.#cluster.nodes.map(({ name }) => name);
    const residents = names.flatMap((node) => [
      this.#lives.reside({ node, persistence: "ephemeral" }, isEnough),
      this.#lives.reside({ node, persistence: "persistent" }, isEnough),
    ]);
    const lives = Array.from({ length: LIVES }, (_, n) =>
      this.#liveOn(seededRandom(this.#options.seed + 10 + n), names),
    );
    const tenth = this.#measureAt(creates / 10);
    await this.#madeSo(FIRST_CREATES);
    await this.#strikes.run(kills - LAST_KILLS);
    isStruck = true;
    const [stayed] = await Promise.all([Promise.all(residents), Promise.all(lives), tenth]);
    return stayed.filter((subject) => subject !== undefined);
  }

  async #liveOn(random: Random, names: readonly string[]): Promise<void> {
    while (this.#lives.counts.creates < this.#options.creates) await this.#lives.live(random, names);
  }

  /** The last kill finds sandboxes on the way from and to everywhere. Resolves to all that are there then. */
  async #finale(residents: readonly Subject[]): Promise<Subject[]> {
    const lives = this.#lives;
    const movers = await Promise.all(MOVES.map((move, n) => this.#prepare(move, this.#cluster.nodes[n % 2]?.name)));
    const running = residents.map((subject) => lives.attempt(subject, () => lives.command(subject, LAST_COMMAND)));
    await delay(1_000);
    const moving = movers.map((subject, n) => lives.attempt(subject, () => lives.act(subject, MOVES[n] ?? "stop")));
    const made = (["ephemeral", "persistent"] as const).map((persistence) =>
      lives.create({ persistence, node: undefined, followed: true }),
    );
    await delay(LAST_AFTER_MS);
    await this.#strikes.last();
    this.#settledMs = await this.#settle();
    await Promise.all([...running, ...moving]);
    return [...residents, ...movers, ...(await Promise.all(made))];
  }

  /** A sandbox of which that can be asked. */
  async #prepare(move: Move, node: string | undefined): Promise<Subject> {
    const lives = this.#lives;
    const subject = await lives.create({ persistence: "persistent", node, followed: true });
    await lives.runs(subject);
    if (move === "resume") await lives.act(subject, "pause");
    if (move === "start") await lives.act(subject, "stop");
    return subject;
  }

  /** Resolves to the longest that a sandbox was on its way while all was up. */
  async #settle(): Promise<number> {
    const { ms, what } = await this.#watch.settled(GIVE_UP_MS);
    if (ms > SETTLED_WITHIN_MS) this.#problems.push(`${what} for ${ms} ms while all of the cluster was up`);
    return ms;
  }

  /** Deletes everything; resolves to how long nodes took to put it away. */
  async #clear(subjects: readonly Subject[]): Promise<number> {
    await Promise.all(subjects.map((subject) => this.#lives.delete(subject)));
    for (const [id, state] of await this.#client.list()) this.#problems.push(`${id} is still there, ${state}`);
    const startedMs = performance.now();
    for (;;) {
      const left = this.#cluster.nodes.flatMap((node) => machinesOf(node).map((name) => `${name} on ${node.name}`));
      const tookMs = Math.round(performance.now() - startedMs);
      if (left.length === 0) return tookMs;
      if (tookMs > CLEARED_WITHIN_MS) {
        this.#problems.push(`${tookMs} ms after all were deleted there are machines: ${left.join(", ")}`);
        return tookMs;
      }
      await delay(100);
    }
  }

  async #measureAt(creates: number): Promise<void> {
    await this.#madeSo(creates);
    await this.#measure();
  }

  /** Resolves when so many sandboxes were made. */
  async #madeSo(creates: number): Promise<void> {
    while (this.#lives.counts.creates < creates) await delay(LOOK_MS);
  }

  async #measure(): Promise<void> {
    const { pid } = this.#spared.program;
    if (pid !== undefined) this.#figures.push(figuresOf(pid));
  }

  #checkFigures(): void {
    const [idle, tenth, last] = this.#figures;
    if (idle === undefined || tenth === undefined || last === undefined) throw new Error("figures are missing");
    if (last.descriptors > idle.descriptors + MORE_DESCRIPTORS)
      this.#problems.push(`a node has ${last.descriptors} open files in the end`);
    if (last.residentMib > tenth.residentMib + MORE_MIB)
      this.#problems.push(`a node has ${last.residentMib} MiB in the end`);
  }

  async #checkRemains(): Promise<void> {
    const codes = await this.#cluster.stopNodes();
    if (codes.some((code) => code !== 0)) this.#problems.push(`nodes ended with ${codes.join(", ")}`);
    for (const node of this.#cluster.nodes) {
      // What was killed takes a moment to go.
      let left = await remainsOf(node);
      for (let looks = 1; left.length > 0 && looks < MOST_LOOKS; looks++) {
        await delay(LOOK_MS);
        left = await remainsOf(node);
      }
      this.#problems.push(...left.map((line) => `left of ${node.name}: ${line}`));
    }
  }
}

/** What a report says in one line. */
export function describeReport(report: SandboxChaosReport): string {
  const { kills, creates, disconnects, commands, commandsLost, failed, returned, settledMs, clearedMs, figures } =
    report;
  const happened = Object.entries(report.strikes).map(([kind, times]) => `${times} × ${kind}`);
  const shown = figures.map(({ descriptors, residentMib }) => `${descriptors} files and ${residentMib} MiB`);
  return (
    `${kills} kills, ${creates} sandboxes, ${disconnects} disconnects; ${commands} commands ended truly, ` +
    `${commandsLost} were lost with their node; ${failed} sandboxes failed with their node, ${returned} came back; ` +
    `settled within ${settledMs} ms while all were up, cleared in ${clearedMs} ms; a node had ${shown.join(", then ")}; ` +
    happened.join(", ")
  );
}
