import type { AuditLog } from "../../../auth/audit.ts";
import type { Clock } from "../../../core/clock.ts";
import type { IdSource } from "../../../core/ids.ts";
import type { SandboxEvents } from "../events/log.ts";
import type { ImagePort } from "../../contract/images/image-port.ts";
import type { LayerStore } from "../images/layer-store.ts";
import type { MachineImages } from "../images/machine-images.ts";
import type { NodeCaller } from "../../contract/link/calls.ts";
import type { NodeDirectory } from "../link/node-directory.ts";
import type { Sandboxes } from "../sandboxes.ts";
import type { Workspaces } from "../workspaces/workspaces.ts";

/** What the routes of sandboxes work with. */
export type SandboxDeps = {
  /** The records. `sandboxes.get(id, caller)` is how a route finds the one that it is about. */
  sandboxes: Sandboxes;
  workspaces: Workspaces;
  /** See `callNode`: how a route reaches what is in a sandbox. */
  nodes: NodeCaller;
  link: LinkDeps;
  /** Their logs, for those who follow them. */
  events: SandboxEvents;
  /** Images of tenants, and their builds. */
  images: MachineImages;
  /** What images consist of, for nodes. */
  layers: ImagePort & Pick<LayerStore, "isFor">;
  audit: AuditLog;
  clock: Clock;
  newId: IdSource;
  /** How long start, stop, pause and resume wait for the state that was asked for. */
  actionWaitMs: number;
  /** How long a node may take before it begins to answer. */
  callTimeoutMs: number;
  /** Whether this process runs sandboxes itself: `off` where nobody wants it to, else why it does not. */
  runtime: () => "here" | "off" | { why: string };
  /** Whether this process is about to stop. */
  isDraining: () => boolean;
};

/** How nodes are connected. */
export type LinkDeps = {
  nodes: Pick<NodeDirectory, "attach" | "tell">;
  /** Where the processes of the control plane are reached. */
  gateways: () => readonly string[];
  /** Whether the worker's token is still good: asked now and then while it is connected. */
  isAdmitted: (workerId: string) => Promise<boolean>;
};
