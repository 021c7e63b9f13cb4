import type { Hold } from "../../fabric/job.ts";
import type { Sandboxes } from "./sandboxes.ts";
import type { TurnMessage } from "../contract/turn.ts";
import type {
  ControlPort,
  NodeAnswer,
  NodeReport,
  DesiredStateChange,
  SandboxBatch,
  DesiredState,
} from "../contract/control-port.ts";

export type LocalControlPortOptions = {
  nodeId: string;
  sandboxes: Pick<Sandboxes, "report" | "desiredState" | "record" | "history" | "signals">;
};

/** The control plane as a node in a process with the catalog reaches it: directly. */
export class LocalControlPort implements ControlPort {
  readonly nodeId: string;
  readonly #sandboxes: LocalControlPortOptions["sandboxes"];

  constructor({ nodeId, sandboxes }: LocalControlPortOptions) {
    this.nodeId = nodeId;
    this.#sandboxes = sandboxes;
  }

  /** Without gateways: which ones a node needs is for whoever connects it. */
  async report(node: NodeReport): Promise<NodeAnswer> {
    return { ...(await this.#sandboxes.report(this.nodeId, node)), gateways: [] };
  }

  desiredState(hold: Hold): Promise<DesiredState> {
    return this.#sandboxes.desiredState(hold);
  }

  record(hold: Hold, batch: SandboxBatch): Promise<DesiredState> {
    return this.#sandboxes.record(hold, batch);
  }

  history(hold: Hold, sessionId: string): Promise<readonly TurnMessage[]> {
    return this.#sandboxes.history(hold, sessionId);
  }

  onDesiredState(listener: (sandboxId: string, change?: DesiredStateChange) => void): () => void {
    return this.#sandboxes.signals.onDesiredStateOf(this.nodeId, listener);
  }
}
