import { openMemoryCatalog } from "../catalog/sqlite/memory.test-kit.ts";
import { ManualClock, systemClock } from "../core/clock.ts";
import { EngineError } from "../core/errors.ts";
import { uuidV7Source } from "../core/ids.ts";
import { silentLog } from "../core/log.ts";
import { seededRandom, type Random } from "../core/random.ts";
import type { JobPort } from "../fabric/handler.ts";
import { JobLogs } from "../fabric/job-logs.ts";
import { LocalPort } from "../fabric/local-port.ts";
import { FakeHost, FakeRuntime } from "./runtime/fake-runtime.test-kit.ts";
import { controlPlaneOn, ROOMY, type ControlPlane } from "./control/scheduler/scheduler.test-kit.ts";
import { NO_COMPANIONS } from "./node/reconciler/companions.ts";
import type { ControlPort } from "./contract/control-port.ts";
import { LeasedFiles, type Leased } from "./node/leased-files.ts";
import { LocalControlPort } from "./control/local-control-port.ts";
import { SandboxNode } from "./node/node.ts";

export const GRACE_MS = 3_000;
const NODE_ID = "01900000-0000-7000-8000-00000000000a";
const STEP_MS = 50;
const DUTIES_EVERY_MS = 1_000;

/** How the way from a node to the control plane is: what is asked is done or not, and answered or not. */
export type Way = "open" | "no answers" | "closed";

/**
 * A control plane on a real catalog, one computer, and the processes of a node on it, one after the other. Time is the
 * test's; whatever happens within one moment happens before time goes on.
 */
export class NodeWorld {
  readonly clock = new ManualClock(systemClock.nowMs());
  readonly host = new FakeHost(this.clock);
  readonly plane: ControlPlane;
  /** What the node has written down, by sandbox. */
  readonly #begunTurns = new Map<string, readonly string[]>();
  readonly files = new Map<string, Leased>();
  /** Asked for each call of a node to the control plane. */
  way: () => Way = () => "open";
  readonly #opened = openMemoryCatalog(this.clock);
  readonly #random: Random;
  readonly #volumesKeptMs: number | undefined;
  #process: NodeProcess | undefined;
  #dutiesAtMs = 0;

  constructor(seed = 1, { volumesKeptMs }: { volumesKeptMs?: number } = {}) {
    this.#volumesKeptMs = volumesKeptMs;
    this.#random = seededRandom(seed);
    this.plane = controlPlaneOn({ catalog: this.#opened.catalog, clock: this.clock }, { seed });
  }

  /** The process of the node that lives. */
  get node(): SandboxNode | undefined {
    return this.#process?.node;
  }

  /** Begins a process of the node; it takes up what it finds. Resolves at once: it needs time. */
  begin(): void {
    const life = new AbortController();
    const runtime = new FakeRuntime(this.host);
    const newId = uuidV7Source(this.clock, this.#random);
    const { fabric, records, sandboxes } = this.plane;
    const jobs = new LocalPort({
      fabric,
      newId,
      logs: new JobLogs(records),
      credential: () => Promise.reject(new Error("there are none")),
      nodeId: NODE_ID,
    });
    const control = new LocalControlPort({ nodeId: NODE_ID, sandboxes });
    const node = new SandboxNode({
      runtime,
      jobs: this.#jobsOf(jobs, life.signal),
      control: this.#controlOf(control, life.signal),
      files: new MemoryFiles(this.files, this.#begunTurns, life.signal),
      companions: NO_COMPANIONS,
      agentCommands: {},
      node: { name: "n", runtime: "fake", labels: {}, capacity: ROOMY, bootId: "b" },
      warmsAtOnce: false,
      volumesKeptMs: this.#volumesKeptMs,
      killGraceMs: GRACE_MS,
      clock: this.clock,
      random: this.#random,
      log: silentLog,
    });
    this.#process = { node, runtime, life };
    void node.start().then(() => (life.signal.aborted ? undefined : node.run()));
  }

  /** The process is gone, and says nothing to anybody. */
  crash(): void {
    this.#process?.life.abort();
    this.#process?.runtime.kill();
    this.#process = undefined;
  }

  /** The process is told to end, and does. */
  async end(): Promise<void> {
    const { node, life } = this.#process ?? {};
    if (node === undefined) return;
    const ended = { isOver: false };
    void node
      .drain()
      .then(() => node.stop())
      .then(() => (ended.isOver = true));
    for (let waited = 0; !ended.isOver && waited < 20_000; waited += STEP_MS) await this.pass(STEP_MS);
    life?.abort();
    this.crash();
  }

  /** Lets time pass, with all that happens in it. */
  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += STEP_MS) {
      await settle();
      this.clock.advance(Math.min(STEP_MS, ms - passed));
      await settle();
      if (this.clock.nowMs() - this.#dutiesAtMs < DUTIES_EVERY_MS) continue;
      this.#dutiesAtMs = this.clock.nowMs();
      await this.plane.fabric.sweep();
      await this.plane.sandboxes.settle();
      await this.plane.sandboxes.place();
    }
  }

  /** Lets time pass until it is so. */
  async until(what: string, isSo: () => Promise<boolean> | boolean, mostMs = 120_000): Promise<void> {
    for (let passed = 0; passed <= mostMs; passed += STEP_MS) {
      if (await isSo()) return;
      await this.pass(STEP_MS);
    }
    throw new Error(`it never came to be: ${what}`);
  }

  /** Of a sandbox, as the records have it. */
  async stateOf(id: string): Promise<string> {
    const [row] = await this.plane.records.rows("SELECT state FROM sandboxes WHERE id = ?", [id]);
    return row === undefined ? "gone" : String(row["state"]);
  }

  async close(): Promise<void> {
    this.crash();
    this.plane.fabric.close();
    await this.#opened.catalog.close();
  }

  #jobsOf(port: LocalPort, life: AbortSignal): JobPort {
    const asked = <T>(call: () => Promise<T>) => this.#asked(life, call);
    return {
      claim: (request) => asked(() => port.claim({ ...request, signal: AbortSignal.any([request.signal, life]) })),
      extend: (hold, leaseMs) => asked(() => port.extend(hold, leaseMs)),
      progress: (hold, snapshot) => asked(() => port.progress(hold, snapshot)),
      log: (hold, lines) => asked(() => port.log(hold, lines)),
      complete: (hold, result) => asked(() => port.complete(hold, result)),
      fail: (hold, failure) => asked(() => port.fail(hold, failure)),
      release: (hold) => asked(() => port.release(hold)),
      credential: (hold, id) => asked(() => port.credential(hold, id)),
      onCancel: (listener) => port.onCancel((id) => !life.aborted && listener(id)),
    };
  }

  #controlOf(port: LocalControlPort, life: AbortSignal): ControlPort {
    const asked = <T>(call: () => Promise<T>) => this.#asked(life, call);
    return {
      nodeId: port.nodeId,
      report: (node) => asked(() => port.report(node)),
      desiredState: (hold) => asked(() => port.desiredState(hold)),
      history: (hold, sessionId) => asked(() => port.history(hold, sessionId)),
      record: (hold, batch) => asked(() => port.record(hold, batch)),
      onDesiredState: (listener) =>
        port.onDesiredState((...change) => !life.aborted && this.way() === "open" && listener(...change)),
    };
  }

  async #asked<T>(life: AbortSignal, call: () => Promise<T>): Promise<T> {
    if (life.aborted) return await never();
    const way = this.way();
    if (way === "closed") throw new EngineError("unavailable", "there is no way to the control plane");
    const answer = await call();
    if (life.aborted) return await never();
    if (way === "no answers") throw new EngineError("unavailable", "the answer was lost");
    return answer;
  }
}

type NodeProcess = { node: SandboxNode; runtime: FakeRuntime; life: AbortController };

/** The node's files, without a disk: a process that has died writes no more. */
class MemoryFiles extends LeasedFiles {
  readonly #files: Map<string, Leased>;
  readonly #turns: Map<string, readonly string[]>;
  readonly #life: AbortSignal;

  constructor(files: Map<string, Leased>, turns: Map<string, readonly string[]>, life: AbortSignal) {
    super("/nowhere");
    this.#files = files;
    this.#turns = turns;
    this.#life = life;
  }

  override async readAll(): Promise<Leased[]> {
    return structuredClone([...this.#files.values()]);
  }

  override async read(sandboxId: string): Promise<Leased | undefined> {
    if (this.#life.aborted) return await never();
    return structuredClone(this.#files.get(sandboxId));
  }

  override async write(leased: Leased): Promise<void> {
    if (this.#life.aborted) await never();
    this.#files.set(leased.sandboxId, structuredClone(leased));
  }

  override writeTurns(sandboxId: string, turnIds: readonly string[]): void {
    if (!this.#life.aborted) this.#turns.set(sandboxId, [...turnIds]);
  }

  override readTurns(sandboxId: string): readonly string[] {
    return this.#turns.get(sandboxId) ?? [];
  }

  override async remove(sandboxId: string): Promise<void> {
    if (this.#life.aborted) await never();
    this.#files.delete(sandboxId);
    this.#turns.delete(sandboxId);
  }
}

function never(): Promise<never> {
  return new Promise(() => undefined);
}

/** All that follows from what has happened, without time. */
async function settle(): Promise<void> {
  for (let i = 0; i < 3; i++) await new Promise(setImmediate);
}
