import { setTimeout as delay } from "node:timers/promises";
import { seededRandom, type Random } from "../../src/core/random.ts";
import type { SandboxAction } from "../../src/sandbox/contract/states.ts";
import { SANDBOX_ACTIONS } from "../../src/sandbox/contract/states.ts";
import type { ChaosClient } from "./chaos-client.ts";
import { LEASE_MS, type ChaosCluster } from "./chaos-cluster.ts";
import { CommandLost, runNumbered, type Numbered } from "./chaos-command.ts";
import { EventFollower } from "./chaos-events.ts";

/** A sandbox, and what it is known to be. */
export type Subject = {
  id: string;
  persistence: "ephemeral" | "persistent";
  /** Where it was asked for; undefined: anywhere. */
  node: string | undefined;
  bornAtMs: number;
  random: Random;
  events: EventFollower | undefined;
  /** Whether there is a file on its disk that has to stay. */
  isMarked: boolean;
};

/** What became of sandboxes and their commands. */
export type LifeCounts = {
  creates: number;
  commands: number;
  /** Commands whose machine was lost with its node. */
  commandsLost: number;
  /** Events of sandboxes that were followed from the first to the last. */
  eventsFollowed: number;
  /** Ephemeral sandboxes that failed because their node was lost, and how often persistent ones waited for theirs. */
  failed: number;
  returned: number;
};

export type LifePorts = {
  client: ChaosClient;
  cluster: ChaosCluster;
  seed: number;
  problems: string[];
};

const LIMITS = { cpu_cores: 0.5, memory_mb: 64, max_processes: 32 };
/** Disks of another size than the prepared machines' are made anew. */
const SMALL_DISK_MB = 64;
const SHORT: Omit<Numbered, "exitCode"> = { lines: 3, everyMs: 10 };
const LONG = { leastLines: 15, moreLines: 25, everyMs: 100 };
const MARK = "kept";
const RETRY_MS = 100;
/** So often it may be up by the records, and is not. */
const MOST_TRIES = 150;

/** The sandbox is not there any more, as may be: its node was lost. */
class SandboxLost extends Error {}

/** What is done with sandboxes, and what must be true of them meanwhile. */
export class Lives {
  readonly counts: LifeCounts = { creates: 0, commands: 0, commandsLost: 0, eventsFollowed: 0, failed: 0, returned: 0 };
  readonly #ports: LifePorts;

  constructor(ports: LifePorts) {
    this.#ports = ports;
  }

  /** Makes a sandbox and waits until it runs. Rejects with `SandboxLost`. */
  async create(wanted: Pick<Subject, "persistence" | "node"> & { followed?: boolean }): Promise<Subject> {
    const { client, seed } = this.#ports;
    const number = ++this.counts.creates;
    const random = seededRandom(seed + 1_000 * number);
    const { persistence, node, followed = false } = wanted;
    const disk = random.next() < 0.5 ? {} : { disk_mb: SMALL_DISK_MB };
    const id = await client.create(`s-${number}`, {
      persistence,
      resource_limits: { ...LIMITS, ...disk },
      ...(node === undefined ? {} : { labels: { "node/name": node } }),
    });
    const events = followed ? new EventFollower(client, random, id) : undefined;
    return { id, persistence, node, bornAtMs: performance.now(), random, events, isMarked: false };
  }

  async runs(subject: Subject): Promise<void> {
    await this.#reaches(subject, "running");
  }

  /** Runs commands in it until it is told to stop, and has it pause, or stop and start, now and then. */
  async reside(wanted: Pick<Subject, "persistence" | "node">, isOver: () => boolean): Promise<Subject | undefined> {
    while (!isOver()) {
      const subject = await this.create({ ...wanted, followed: true });
      try {
        await this.runs(subject);
        await this.#mark(subject);
        while (!isOver()) await this.#passTime(subject);
        return subject;
      } catch (error) {
        await this.#failed(subject, error);
      }
    }
    return undefined;
  }

  /** One that comes and goes. */
  async live(random: Random, nodes: readonly string[]): Promise<void> {
    const kind = random.next();
    const node = random.next() < 0.5 ? undefined : nodes[Math.floor(random.next() * nodes.length)];
    const persistence = kind < 0.75 ? "ephemeral" : "persistent";
    const subject = await this.create({ persistence, node, followed: kind >= 0.4 });
    try {
      if (kind < 0.1) {
        // Deleted while it is made.
        await delay(random.next() * 200);
      } else {
        await this.runs(subject);
        if (kind < 0.4) await this.command(subject, SHORT);
        else if (kind < 0.6) await this.command(subject, this.#long(subject));
        else if (kind < 0.75) await this.#pause(subject);
        else await this.#stopAndStart(subject);
      }
      await this.delete(subject);
    } catch (error) {
      await this.#failed(subject, error);
    }
  }

  /** Runs a command to its end; it must have written what it writes, and end as it ends. */
  async command(subject: Subject, lines: Omit<Numbered, "exitCode">, onBegun?: () => void): Promise<void> {
    const { client, problems } = this.#ports;
    const { random, id } = subject;
    const numbered = { ...lines, exitCode: Math.floor(random.next() * 100) };
    const begunAtMs = performance.now();
    try {
      const problem = await runNumbered({ client, random, id, ...(onBegun && { onBegun }) }, numbered);
      this.counts.commands++;
      if (problem !== undefined) problems.push(`${id}: ${problem}`);
    } catch (error) {
      if (!(error instanceof CommandLost)) throw error;
      this.counts.commandsLost++;
      // Its node may have been away before, and the machine end only then.
      const sinceMs = Math.max(subject.bornAtMs, begunAtMs - 2 * LEASE_MS);
      this.#checkLoss({ ...subject, bornAtMs: sinceMs }, `a command was lost: ${error.message}`);
      await this.#returns(subject);
    }
  }

  /** It is no more; its events must tell of all of its life. */
  async delete(subject: Subject): Promise<void> {
    const { client, problems } = this.#ports;
    const { status, text } = await client.ask("DELETE", `/${subject.id}`);
    if (status !== 204 && status !== 404) problems.push(`${subject.id} was not deleted: ${status} ${text}`);
    if ((await client.see(subject.id)) !== undefined) problems.push(`${subject.id} is there after it was deleted`);
    problems.push(...((await subject.events?.end()) ?? []));
    this.counts.eventsFollowed += subject.events?.count ?? 0;
    this.counts.returned += subject.events?.returns ?? 0;
  }

  /** Asks for it, until that is understood; resolves when the sandbox is there. */
  async act(subject: Subject, action: Exclude<SandboxAction, "delete">): Promise<void> {
    await this.#ports.client.ask("POST", `/${subject.id}/${action}`);
    await this.#reaches(subject, SANDBOX_ACTIONS[action].rests);
  }

  #long({ random }: Subject): Omit<Numbered, "exitCode"> {
    const { leastLines, moreLines, everyMs } = LONG;
    return { lines: leastLines + Math.floor(random.next() * moreLines), everyMs };
  }

  async #passTime(subject: Subject): Promise<void> {
    const { random, persistence } = subject;
    const drawn = random.next();
    if (drawn < 0.7) await this.command(subject, this.#long(subject));
    else if (drawn < 0.85) await this.#pause(subject);
    else if (persistence === "persistent") await this.#stopAndStart(subject);
  }

  /** Paused in the middle of a command, and resumed. */
  async #pause(subject: Subject): Promise<void> {
    const begun = Promise.withResolvers<void>();
    const running = this.command(subject, this.#long(subject), () => begun.resolve());
    // Where it ends before it has begun, it is lost.
    running.then(() => begun.resolve(), begun.reject);
    await begun.promise;
    await delay(subject.random.next() * 500);
    await this.act(subject, "pause");
    await delay(subject.random.next() * 500);
    await this.act(subject, "resume");
    await running;
  }

  async #stopAndStart(subject: Subject): Promise<void> {
    await this.#mark(subject);
    await this.act(subject, "stop");
    await delay(subject.random.next() * 300);
    await this.act(subject, "start");
    await this.#checkMark(subject);
  }

  /** Leaves a file on the disk. */
  async #mark(subject: Subject): Promise<void> {
    const { client } = this.#ports;
    if (subject.persistence === "ephemeral") return;
    for (;;) {
      const { status, text } = await client.ask("PUT", `/${subject.id}/files/home/agent/${MARK}`, MARK);
      if (status === 200 || status === 201) {
        subject.isMarked = true;
        return;
      }
      if (status !== 409) throw new Error(`a file was not written: ${status} ${text}`);
      await this.#returns(subject);
    }
  }

  /** A node may know that it has lost the sandbox before the control plane does: then it is not up for a moment. */
  async #checkMark({ id, isMarked }: Subject): Promise<void> {
    const { client, problems } = this.#ports;
    if (!isMarked) return;
    for (let tries = 0; ; tries++) {
      const { status, text } = await client.ask("GET", `/${id}/files/home/agent/${MARK}`);
      if (status === 200 && text.includes(MARK)) return;
      if (status !== 409 || tries > MOST_TRIES) {
        problems.push(`${id}: its file is ${status} ${text}`);
        return;
      }
      await delay(RETRY_MS);
      // Its node may be lost once more; how soon it is back is looked at for all of them.
      await client.reaches(id, ["running", "failed"]);
    }
  }

  async #reaches(subject: Subject, state: string): Promise<void> {
    const { client, cluster } = this.#ports;
    const { id, persistence, node, bornAtMs } = subject;
    const seen = await client.reaches(id, [state, "failed", "running"]);
    if (seen.state === state) return;
    // What was in its memory is gone with its node: it does not go on being paused.
    if (seen.state === "running" && persistence === "persistent" && cluster.mayHaveLost(node, bornAtMs)) return;
    if (seen.state === "gone") throw new Error("it is gone, and nobody deleted it");
    this.#checkLoss(subject, `it is ${seen.state} and not ${state}: ${seen.reason}`);
    throw new SandboxLost(seen.reason);
  }

  /** After its machine was lost: a persistent one is there again soon, with its disk. */
  async #returns(subject: Subject): Promise<void> {
    const { state, reason = "" } = await this.#ports.client.reaches(subject.id, ["running", "failed"]);
    if (state !== "running") throw new SandboxLost(reason);
    await this.#checkMark(subject);
  }

  /** It may be so only where its node was away for long enough. */
  #checkLoss({ id, node, persistence, bornAtMs }: Subject, what: string): void {
    const { cluster, problems } = this.#ports;
    if (!cluster.mayHaveLost(node, bornAtMs)) problems.push(`${persistence} ${id} on ${node ?? "some node"}: ${what}`);
  }

  /** Notes why something was not done with a sandbox; it is deleted. */
  async #failed(subject: Subject, error: unknown): Promise<void> {
    this.#note(subject, error);
    await this.delete(subject);
  }

  /** What is done with the sandbox; a loss that may be is no problem. */
  async attempt(subject: Subject, work: () => Promise<void>): Promise<void> {
    await work().catch((error: unknown) => this.#note(subject, error));
  }

  #note(subject: Subject, error: unknown): void {
    if (!(error instanceof SandboxLost)) {
      this.#ports.problems.push(`${subject.id}: ${String(error)}`);
    } else if (subject.persistence === "persistent") {
      this.#ports.problems.push(`persistent ${subject.id} failed: ${error.message}`);
    } else this.counts.failed++;
  }
}
