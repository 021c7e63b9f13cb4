import type { Clock } from "../../../core/clock.ts";
import { EngineError, messageOf } from "../../../core/errors.ts";
import type { Log } from "../../../core/log.ts";
import { credentialIdsIn } from "../../contract/credential-uses.ts";
import type { Egress, SetupSources } from "../../network/egress/egress.ts";
import { certificateEnvironment } from "../../network/egress/environment.ts";
import type { EgressProxy } from "../../network/egress/proxy.ts";
import { createSandboxFiles, type SandboxFiles } from "../files/files.ts";
import type { FilesTarget } from "../files/target.ts";
import { Gateway } from "../../network/gateway/gateway.ts";
import { routesOf } from "../../network/gateway/routes.ts";
import type { Machine, Runtime } from "../../runtime/runtime.ts";
import type { SandboxSpec } from "../../contract/spec.ts";
import type { Companions } from "./companions.ts";
import type { SandboxOrder } from "../../contract/control-port.ts";
import type { Traffic } from "../figures.ts";
import type { SandboxSecrets } from "./secrets.ts";

export type SurroundingsOptions = {
  runtime: Runtime;
  egress: Egress;
  /** Where the APIs of agents are, by agent provider. */
  providerUrls: Readonly<Record<string, string>>;
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
  readonly #options: SurroundingsOptions;
  readonly #proxies = new Map<string, EgressProxy>();
  readonly #files = new Map<string, SandboxFiles>();

  constructor(options: SurroundingsOptions) {
    this.#options = options;
  }

  get sources(): SetupSources {
    return this.#options.egress.sources;
  }

  letOut(sandboxId: string, hosts: readonly string[]): () => void {
    return this.#proxies.get(sandboxId)?.letOut(hosts) ?? (() => undefined);
  }

  /** The operator's; and the sandbox's own, where requests are to be read that it sends over TLS. */
  async certificates({ spec }: SandboxOrder, secrets: SandboxSecrets): Promise<string | undefined> {
    if (!spec.network.enabled) return undefined;
    const { certificates: ofOperator } = this.#options.egress;
    if (!endsTls(spec)) return ofOperator;
    const own = (await secrets.authority()).certificate;
    return ofOperator === undefined ? own : `${ofOperator.trimEnd()}\n${own}`;
  }

  environment({ spec }: SandboxOrder): Record<string, string> {
    return {
      ...this.#options.egress.environment(spec.network),
      ...(endsTls(spec) ? certificateEnvironment() : {}),
    };
  }

  async began(machine: Machine, { spec, sandboxId }: SandboxOrder, secrets: SandboxSecrets): Promise<void> {
    const gateway = await this.#gatewayOf(spec, secrets);
    await this.end(sandboxId);
    if (!spec.network.enabled) return;
    this.#proxies.set(sandboxId, this.#options.egress.open(machine, spec.network, gateway));
  }

  /** What adds the credentials of a sandbox to its requests; undefined for one without. */
  async #gatewayOf(spec: SandboxSpec, secrets: SandboxSecrets): Promise<Gateway | undefined> {
    const { egress, providerUrls, clock, log } = this.#options;
    if (credentialIdsIn(spec).length === 0) return undefined;
    return new Gateway({
      routes: routesOf(spec, providerUrls, egress.sources),
      reveal: (credentialId) => secrets.reveal(credentialId),
      authority: endsTls(spec) ? await secrets.authority() : undefined,
      certificates: egress.certificates,
      clock,
      log,
    });
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

/** Whether it has credentials for hosts: those of repositories travel another way. */
function endsTls({ credentials = [] }: SandboxSpec): boolean {
  return credentials.length > 0;
}

/** Of a machine that runs. */
function targetIn({ initPid: pid, rootOnHost }: Machine): FilesTarget {
  if (rootOnHost === undefined) return { kind: "live", pid };
  const { path: root, firstHostId, volumes } = rootOnHost;
  return { kind: "mounted", root, firstHostId, pid, volumes, covered: COVERED_IN_MEMORY, release: async () => {} };
}
