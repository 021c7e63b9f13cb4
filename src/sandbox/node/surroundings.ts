import type { Clock } from "../../core/clock.ts";
import { EngineError, messageOf } from "../../core/errors.ts";
import type { Log } from "../../core/log.ts";
import type { Egress, SetupSources } from "../egress/egress.ts";
import type { EgressProxy } from "../egress/proxy.ts";
import { createSandboxFiles, type SandboxFiles } from "../files/files.ts";
import type { FilesTarget } from "../files/target.ts";
import type { Machine, Runtime } from "../runtime/runtime.ts";
import type { Companions } from "./companions.ts";
import type { SandboxOrder } from "./control-port.ts";
import type { Traffic } from "./figures.ts";

export type SurroundingsOptions = {
  runtime: Runtime;
  egress: Egress;
  /** What this node knows of a sandbox that it has. */
  find: (sandboxId: string) => { machine: Machine | undefined; order: SandboxOrder | undefined } | undefined;
  clock: Clock;
  log: Log;
};

/** What a running machine covers of its root with what does not stay. */
const COVERED = ["/proc", "/sys", "/dev", "/tmp", "/run"];

/** What one with a kernel of its own does: its files for the moment are on its disk. */
const COVERED_IN_MEMORY = COVERED.filter((path) => path !== "/tmp");

/** The way out of each sandbox of this node, and its files. */
export class Surroundings implements Companions {
  readonly certificates: string | undefined;
  readonly #options: SurroundingsOptions;
  readonly #proxies = new Map<string, EgressProxy>();
  readonly #files = new Map<string, SandboxFiles>();

  constructor(options: SurroundingsOptions) {
    this.#options = options;
    this.certificates = options.egress.certificates;
  }

  get sources(): SetupSources {
    return this.#options.egress.sources;
  }

  letOut(sandboxId: string, hosts: readonly string[]): () => void {
    return this.#proxies.get(sandboxId)?.letOut(hosts) ?? (() => undefined);
  }

  environment({ spec }: SandboxOrder): Record<string, string> {
    return this.#options.egress.environment(spec.network);
  }

  async began(machine: Machine, { spec, sandboxId }: SandboxOrder): Promise<void> {
    await this.end(sandboxId);
    if (spec.network.enabled) this.#proxies.set(sandboxId, this.#options.egress.open(machine, spec.network));
  }

  /** Never rejects. */
  async end(sandboxId: string): Promise<void> {
    this.#proxies.get(sandboxId)?.close();
    this.#proxies.delete(sandboxId);
    const files = this.#files.get(sandboxId);
    this.#files.delete(sandboxId);
    if (files === undefined) return;
    const { runtime, log } = this.#options;
    try {
      await files.end();
      await runtime.closeHelperLimits(sandboxId);
    } catch (error) {
      log.warn({ sandboxId, reason: messageOf(error) }, "the files of a sandbox were not let go in order");
    }
  }

  traffic(sandboxId: string): Traffic {
    const { receivedBytes = 0, sentBytes = 0 } = this.#proxies.get(sandboxId)?.traffic ?? {};
    return { rxBytes: receivedBytes, txBytes: sentBytes };
  }

  /** The files of a sandbox, up or stopped. Throws `unavailable` for one that this node does not have. */
  filesOf(sandboxId: string): SandboxFiles {
    const { find, clock, log } = this.#options;
    const order = find(sandboxId)?.order;
    if (order === undefined) throw new EngineError("unavailable", "the node does not have the sandbox");
    let files = this.#files.get(sandboxId);
    if (files === undefined) {
      const isDurable = order.spec.persistence === "persistent";
      files = createSandboxFiles({ target: () => this.#targetOf(sandboxId), clock, log, isDurable });
      this.#files.set(sandboxId, files);
    }
    return files;
  }

  async #targetOf(sandboxId: string): Promise<FilesTarget> {
    const { find, runtime } = this.#options;
    const { machine, order } = find(sandboxId) ?? {};
    const joins = await runtime.openHelperLimits(sandboxId);
    if (machine !== undefined) return { ...targetIn(machine), joins };
    const opened = order?.state === "stopped" ? await runtime.openStopped(sandboxId) : undefined;
    if (opened === undefined) {
      throw new EngineError("sandbox_invalid_state", `the sandbox is ${order?.state ?? "gone"}: it has no files`);
    }
    return {
      kind: "mounted",
      root: opened.path,
      firstHostId: opened.firstHostId,
      covered: COVERED,
      joins,
      release: () => opened.release(),
    };
  }
}

/** Of a machine that runs. */
function targetIn({ initPid: pid, rootOnHost }: Machine): FilesTarget {
  if (rootOnHost === undefined) return { kind: "live", pid };
  const { path: root, firstHostId, volumes } = rootOnHost;
  return { kind: "mounted", root, firstHostId, pid, volumes, covered: COVERED_IN_MEMORY, release: async () => {} };
}
