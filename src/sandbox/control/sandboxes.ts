import type { AuditLog, Origin } from "../../auth/audit.ts";
import { ownerOf, type Asker } from "../../auth/owner.ts";
import type { RecordStore } from "../../db/records.ts";
import type { Signals } from "../../db/signals.ts";
import type { Clock } from "../../core/clock.ts";
import { Semaphore } from "../../core/concurrency.ts";
import type { IdSource } from "../../core/ids.ts";
import type { Log } from "../../core/log.ts";
import type { Metrics } from "../../core/metrics.ts";
import type { Fabric } from "../../fabric/fabric.ts";
import type { Hold } from "../../fabric/job.ts";
import type { CredentialDirectory } from "./credentials/directory.ts";
import type { NodeAnswer, NodeReport, SandboxBatch, DesiredState } from "../contract/control-port.ts";
import { Sessions } from "./sessions/sessions.ts";
import type { TurnMessage } from "../contract/turn.ts";
import { act, type Asked } from "./scheduler/act.ts";
import { settleAwaiting } from "./scheduler/await-image.ts";
import { CreateRate } from "./scheduler/create-rate.ts";
import type { ChangeLimits } from "./scheduler/change.ts";
import { createSandbox, type CreateLimits, type NewSandbox } from "./scheduler/create.ts";
import { getSandbox, listSandboxes, type SandboxFilter } from "./scheduler/find.ts";
import { desiredState, history } from "./scheduler/leased.ts";
import { expirePending, settleLost } from "./scheduler/lost.ts";
import { capNode, forgetNodes, listNodes, reportNode, type SandboxNode } from "./scheduler/nodes.ts";
import { placeWaiting } from "./scheduler/place.ts";
import type { SandboxPorts } from "./scheduler/ports.ts";
import { record } from "./scheduler/record.ts";
import { hasLiveNode } from "./room.ts";
import type { Sandbox } from "./scheduler/sandbox.ts";
import { countSandboxes, SandboxMetrics } from "./scheduler/sandbox-metrics.ts";
import { openEnv, type EnvSealing, type OpenedEnv } from "./scheduler/sealed-env.ts";
import { settled, type Wait } from "./scheduler/settled.ts";
import { deleteVolume, expireVolumes } from "./volumes/remove-volumes.ts";
import type { Volume } from "./volumes/volume.ts";
import type { VolumeLimits } from "./volumes/volume-quota.ts";
import { listVolumes, type VolumePage } from "./volumes/volumes.ts";
import { SandboxSignals } from "./signals.ts";

export type SandboxesOptions = {
  records: RecordStore;
  signals: Signals;
  fabric: Pick<Fabric, "prepare">;
  audit: AuditLog;
  clock: Clock;
  newId: IdSource;
  /** What sandboxes may use, without the secrets. */
  credentials: CredentialDirectory;
  /** Undefined where the operator set no key. */
  envSealing: EnvSealing | undefined;
  log: Log;
  metrics: Metrics;
  limits: SandboxLimits;
};

export type SandboxLimits = CreateLimits &
  ChangeLimits & {
    volumes: VolumeLimits;
    /** How long a volume is kept that no sandbox names; undefined: for ever. */
    volumesKeptMs: number | undefined;
    /** How fast a tenant creates them, in each process. */
    createsPerMinute: number;
    createBurst: number;
    /** How long a new one waits for a node. */
    pendingTimeoutMs: number;
  };

/**
 * Sandboxes as the control plane has them: records, which clients change by their wishes and nodes by what they observe
 * (`states.ts` says who may write what). It runs nothing itself.
 *
 * - A new sandbox gets a node and a job in the transaction that stores it, where a node has room; `place` does so later
 *   otherwise. The job is for that node alone. The node holds it for as long as it has the sandbox, so one lease says
 *   who may write, and its end says that the node is lost.
 * - What a node writes carries the hold of the job, and is written together with a check of it: one that was lost
 *   changes nothing any more, however late its reports come. A report that comes twice is taken once.
 * - Every change of state is an event in the same transaction. Events of a sandbox are numbered without gaps.
 * - What is on a node never passes its capacity: the transaction that puts something there also adds it up. Room is
 *   looked for by one request at a time in each process; those of other processes meet in the database.
 * - Signals make it quick and are never needed: nodes look at the desired states of their sandboxes, the duties at what waits, now and then.
 *
 * One file per verb. This class holds them together for one process; all processes with the catalog have one.
 */
export class Sandboxes {
  readonly signals: SandboxSignals;
  /** Conversations with the agents in them. */
  readonly sessions: Sessions;
  readonly #ports: SandboxPorts;
  readonly #clock: Clock;
  readonly #limits: SandboxLimits;
  readonly #rate: CreateRate;
  readonly #placing = new Semaphore(1);

  constructor({ signals, clock, log, limits, metrics, ...rest }: SandboxesOptions) {
    this.signals = new SandboxSignals({ signals, log });
    const { eventsQuotaBytes, volumes: volumeLimits } = limits;
    const shared = { ...rest, log, eventsQuotaBytes, volumeLimits };
    this.#ports = { ...shared, signals: this.signals, metrics: new SandboxMetrics(metrics) };
    this.sessions = new Sessions({ ...this.#ports, clock });
    this.#clock = clock;
    this.#limits = limits;
    this.#rate = new CreateRate({ clock, perMinute: limits.createsPerMinute, burst: limits.createBurst });
  }

  /** See `createSandbox`. Rejects with `rate_limited` for a tenant that is too fast, too. */
  async create(asked: NewSandbox): Promise<Sandbox> {
    return await this.#ports.metrics.created(this.#create(asked));
  }

  /** The sandbox, for its owner and for admins. Rejects with `sandbox_not_found`. */
  get(id: string, asker: Asker): Promise<Sandbox> {
    return getSandbox(this.#ports.records, id, asker);
  }

  /** Its environment variables, for whoever may see the sandbox. */
  env(sandbox: Sandbox): OpenedEnv {
    return openEnv(this.#ports.envSealing, sandbox);
  }

  list(filter: SandboxFilter, asker: Asker): Promise<Sandbox[]> {
    return listSandboxes(this.#ports.records, filter, asker);
  }

  /** See `act.ts`. */
  act(id: string, asked: Asked): Promise<Sandbox> {
    return act(this.#ports, id, asked);
  }

  /** See `settled.ts`. */
  settled(sandbox: Sandbox, wait: Wait): Promise<Sandbox> {
    return settled({ ...this.#ports, clock: this.#clock }, sandbox, wait);
  }

  /** See `ControlPort.order`. */
  desiredState(hold: Hold): Promise<DesiredState> {
    return desiredState(this.#ports, hold);
  }

  /** See `ControlPort.record`. */
  record(hold: Hold, batch: SandboxBatch): Promise<DesiredState> {
    return record(this.#ports, hold, batch);
  }

  /** See `ControlPort.history`. */
  history(hold: Hold, sessionId: string): Promise<readonly TurnMessage[]> {
    return history(this.#ports, hold, sessionId);
  }

  /** See `ControlPort.report`. */
  report(nodeId: string, node: NodeReport): Promise<Omit<NodeAnswer, "gateways">> {
    return reportNode(this.#ports, nodeId, node);
  }

  /** All nodes that are known, for admins. */
  nodes(): Promise<SandboxNode[]> {
    return listNodes(this.#ports);
  }

  /** See `capNode`. */
  capNode(nodeId: string, asked: Parameters<typeof capNode>[2]): Promise<SandboxNode> {
    return capNode(this.#ports, nodeId, asked);
  }

  /** Whether there is any sandbox, deleted ones that a node has yet to put away among them. */
  async hasAny(): Promise<boolean> {
    return (await this.#ports.records.rows("SELECT 1 AS one FROM sandboxes LIMIT 1")).length > 0;
  }

  /** Whether there is a node that could run sandboxes. */
  hasLiveNode(): Promise<boolean> {
    return hasLiveNode(this.#ports.records);
  }

  /** See `settleAwaiting`. */
  async settleAwaiting(): Promise<number> {
    const { builtImage } = this.#limits;
    return builtImage === undefined ? 0 : await settleAwaiting(this.#ports, builtImage);
  }

  /** Gives those that wait to nodes. Returns how many found a place. */
  place(): Promise<number> {
    return this.#placing.run(() => placeWaiting(this.#ports));
  }

  /** Settles those whose node is lost, and those for which none had room in time. Returns how many it changed. */
  async settle(): Promise<number> {
    const lost = await settleLost(this.#ports);
    return lost + (await expirePending(this.#ports, this.#limits.pendingTimeoutMs));
  }

  /** Counts all sandboxes and nodes, and shows that in the metrics of this process, until `hide`. */
  async show(): Promise<void> {
    this.#ports.metrics.show(await countSandboxes(this.#ports.records));
  }

  /** Another process counts from here on. */
  hide(): void {
    this.#ports.metrics.hide();
  }

  /** Those that the asker may see, newest first. */
  volumes(page: VolumePage, asker: Asker): Promise<Volume[]> {
    return listVolumes(this.#ports.records, { ...page, keptMs: this.#limits.volumesKeptMs }, asker);
  }

  /** See `deleteVolume`. */
  deleteVolume(id: string, by: { asker: Asker; origin: Origin }): Promise<void> {
    return deleteVolume(this.#ports, id, by);
  }

  /** Deletes volumes that no sandbox has named for long. */
  expireVolumes(): Promise<void> {
    return expireVolumes(this.#ports, this.#limits.volumesKeptMs);
  }

  /** Forgets nodes that are gone for good. */
  forgetNodes(): Promise<void> {
    return forgetNodes(this.#ports);
  }

  async #create(asked: NewSandbox): Promise<Sandbox> {
    this.#rate.take(ownerOf(asked.owner));
    return await this.#placing.run(() => createSandbox(this.#ports, asked, this.#limits));
  }
}
