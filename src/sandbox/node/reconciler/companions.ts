import type { SetupSources } from "../../network/egress/egress.ts";
import type { Machine } from "../../runtime/runtime.ts";
import type { SandboxOrder } from "../../contract/control-port.ts";
import type { TrafficOf } from "../figures.ts";
import type { SandboxSecrets } from "./secrets.ts";

/** What goes along with a machine in this process: its way out of the sandbox, and helpers for its files. */
export interface Companions {
  /** Certificate authorities, in PEM, that the machine is to trust beyond those of its image. */
  certificates(order: SandboxOrder, secrets: SandboxSecrets): Promise<string | undefined>;
  /** Where what is set up in machines comes from, beside their own `allowed_hosts`. */
  readonly sources: SetupSources;
  /** Lets a sandbox reach these hosts, too, until the returned function is called; connections to them end then. */
  letOut(sandboxId: string, hosts: readonly string[]): () => void;
  /** What every command of the machine finds in its environment, beside what its owner says. */
  environment(order: SandboxOrder): Record<string, string>;
  /** The machine is up, made just now or taken up. */
  began(machine: Machine, order: SandboxOrder, secrets: SandboxSecrets): Promise<void>;
  /** Nothing may hold on to the machine or its disk when this resolves. Repeatable. */
  end(sandboxId: string): Promise<void>;
  /** What the sandbox has received and sent since its machine began. */
  traffic: TrafficOf;
}

/** Of machines that are alone. */
export const NO_COMPANIONS: Companions = {
  certificates: () => Promise.resolve(undefined),
  sources: { repositoryHosts: [], plainHttp: false, registryHosts: [] },
  letOut: () => () => undefined,
  environment: () => ({}),
  began: () => Promise.resolve(),
  end: () => Promise.resolve(),
  traffic: () => ({ rxBytes: 0, txBytes: 0 }),
};
