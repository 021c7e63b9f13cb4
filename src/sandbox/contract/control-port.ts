import type { Hold } from "../../fabric/job.ts";
import type { NewSandboxEvent } from "./event.ts";
import type { Turn, TurnMessage, TurnReport } from "./turn.ts";
import type { SandboxSpec } from "./spec.ts";
import type { SandboxState, SandboxWant } from "./states.ts";

/**
 * What a node needs of the control plane, beside the job fabric: the records themselves where it has the catalog, routes
 * for workers in a node daemon. Writes about a sandbox carry the hold of its job and reject with `lease_lost` (an
 * `EngineError`) once that is somebody else's.
 */
export interface ControlPort {
  /** The name under which this node holds its jobs. */
  readonly nodeId: string;
  /** Says what this node is and has, every few seconds. */
  report(node: NodeReport): Promise<NodeAnswer>;
  /**
   * What is to become of a sandbox. A holder asks it before it records anything: where the hold is a new one, what the
   * one before had is settled here as lost. Rejects with `sandbox_not_found` when its record is gone.
   */
  desiredState(hold: Hold): Promise<DesiredState>;
  /**
   * Writes what happened, all or nothing, and returns the desired state as it is then. Batches of one hold are numbered from 1;
   * one that is sent again, for its answer was lost, is not written twice. A state that a client's wish has overtaken
   * meanwhile is left out (the desired state says what is); one that no node may write rejects with `sandbox_invalid_state`.
   */
  record(hold: Hold, batch: SandboxBatch): Promise<DesiredState>;
  /** What was said in a session before the turn that is under way in it, oldest first: as much as an agent may need. */
  history(hold: Hold, sessionId: string): Promise<readonly TurnMessage[]>;
  /** Calls the listener with the id of a sandbox of this node whose desired state changed; some may be missed. */
  onDesiredState(listener: (sandboxId: string, change?: DesiredStateChange) => void): () => void;
}

/** All that has changed since the version before: whoever has that one need not ask for this one. */
export type DesiredStateChange = { version: number; begun: Turn };

export type NodeReport = {
  name: string;
  runtime: string;
  labels: Readonly<Record<string, string>>;
  images: readonly string[];
  capacity: NodeCapacity;
  /** Another one after each start of the machine. */
  bootId: string;
  /** Sandboxes of which only a disk is here: this node has no job for them. */
  keeps?: readonly string[];
  /** Keys of volumes that none of its sandboxes has used for long. */
  unusedVolumes?: readonly string[];
  /** Those of `deletedVolumes` that are no longer here. */
  removedVolumes?: readonly string[];
};

/** All that a node has for sandboxes, whether taken or not. */
export type NodeCapacity = { cpuMillis: number; memoryMb: number; diskMb: number; sandboxes: number };

export type NodeAnswer = {
  /** It is to take no more sandboxes. */
  drain: boolean;
  /** Where the processes of the control plane are reached: the node keeps a connection to each. */
  gateways: readonly string[];
  /** Those of `keeps` that are no more: their disks go. */
  gone?: readonly string[];
  /** Those of `unusedVolumes` that are no volumes of this node: they go. */
  goneVolumes?: readonly string[];
  /** Keys of volumes that were deleted, or have expired: they go, and the node says so in a later report. */
  deletedVolumes?: readonly string[];
};

export type DesiredState = {
  sandboxId: string;
  tenant: string;
  /** Names of its volumes on the node, by those in the spec. Absent in orders of earlier versions: see `volumeKey`. */
  volumeKeys?: Readonly<Record<string, string>>;
  spec: SandboxSpec;
  /** Why the environment variables are not in the spec; absent where they are. */
  closedEnv?: string | undefined;
  state: SandboxState;
  wanted: SandboxWant;
  /** Grows with every change of state or wish. */
  version: number;
  /** Messages that the agent in it is to answer: one at most of each session. */
  turns?: readonly Turn[];
  /** Number of the newest batch of this hold that was taken, 0 before the first: the next one's is greater. */
  recordedBatch: number;
};

export type SandboxBatch = {
  number: number;
  /** In the order in which they happened. A change of state is written as an event by whoever writes the state. */
  events: readonly NewSandboxEvent[];
  /** Its new state; `reason` for people. It must be one that a node may move it to. */
  state?: { to: SandboxState; reason?: string } | undefined;
  /** Newest figures, as the specification has them. */
  stats?: Readonly<Record<string, number>> | undefined;
  /** The desired state that the holder has: the answer leaves out its turns where that is the newest. */
  knownVersion?: number;
  /** Turns that have ended; one that is not under way any more is passed over. */
  turns?: readonly TurnReport[];
  /** Everything of it was put away: its record goes. */
  removed?: true;
};
