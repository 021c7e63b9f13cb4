import { SANDBOX_METRICS } from "../src/sandbox/contract/metrics.ts";
import { sandboxConfig } from "../src/sandbox/contract/options.ts";
import { join } from "node:path";
import { messageOf } from "../src/core/errors.ts";
import type { Service } from "../src/core/lifecycle.ts";
import { VERSION } from "../src/core/version.ts";
import { LocalPort } from "../src/fabric/local-port.ts";
import { Dialler } from "../src/sandbox/node/link/dialler.ts";
import { LocalControlPort } from "../src/sandbox/control/local-control-port.ts";
import type { OpenedNode, OpenNodeOptions } from "../src/sandbox/node/open-node.ts";
import { ownWorker } from "../src/sandbox/node/own-worker.ts";
import { revealFor, type FabricParts } from "./fabric.ts";
import type { Parts } from "./parts.ts";
import type { SandboxParts } from "./sandboxes.ts";

type Ports = { fabric: FabricParts; sandboxes: SandboxParts };

/**
 * Runs sandboxes in this process. It begins in the background: nobody waits for it, and where it cannot be, one line of
 * the log and `/ready` say why, and the server is otherwise what it was.
 */
export function sandboxNode(parts: Parts, ports: Ports): Service {
  const node = new NodeHere(parts, ports);
  let beginning: Promise<void> = Promise.resolve();
  return {
    name: "sandbox node",
    run: async () => {
      if (sandboxConfig(parts.config).sandboxRuntime !== "off") beginning = node.begin();
    },
    drain: () => node.drain(),
    stop: async () => {
      await node.stop();
      await beginning;
      await node.close();
    },
  };
}

class NodeHere {
  readonly #parts: Parts;
  readonly #ports: Ports;
  readonly #stopping = new AbortController();
  #opened: OpenedNode | undefined;
  /** Connections to the other processes that have the same sandboxes to answer for. */
  #dialler: Dialler | undefined;
  #token: string | undefined;

  constructor(parts: Parts, ports: Ports) {
    this.#parts = parts;
    this.#ports = ports;
  }

  /** Resolves when it takes no more sandboxes, or cannot be. */
  async begin(): Promise<void> {
    const { log } = this.#parts;
    const { sandboxes } = this.#ports;
    const { openSandboxNode, NodeUnable } = await import("../src/sandbox/node/open-node.ts");
    try {
      this.#opened = await openSandboxNode(this.#options());
      if (!this.#stopping.signal.aborted) await this.#take(this.#opened);
    } catch (error) {
      sandboxes.setRuntime({ why: messageOf(error) });
      if (error instanceof NodeUnable) log.info({ why: error.message }, "this server runs no sandboxes itself");
      else log.error({ err: error }, "this server takes no sandboxes");
    }
  }

  async drain(): Promise<void> {
    this.#stopping.abort();
    await this.#opened?.node.drain();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#dialler?.stop();
    await this.#opened?.node.stop();
  }

  async close(): Promise<void> {
    await this.#opened?.close();
  }

  async #take({ node, nodeId, calls }: OpenedNode): Promise<void> {
    const { config, log, clock, random } = this.#parts;
    const { sandboxes } = this.#ports;
    const unregister = sandboxes.deps.nodes.register(nodeId, calls);
    this.#stopping.signal.addEventListener("abort", unregister, { once: true });
    if (this.#token !== undefined) {
      this.#dialler = new Dialler({
        handler: calls,
        // It hears of them in the catalog.
        onDesiredState: () => undefined,
        token: this.#token,
        userAgent: `engine/${VERSION}`,
        // Processes of one cluster trust the network between them, as edges do.
        checkUrl: () => undefined,
        clock,
        random,
        log,
      });
    }
    const { sandboxMachines } = SANDBOX_METRICS.of(this.#parts.metrics);
    for (const state of ["running", "paused"] as const) {
      sandboxMachines.watch({ state }, () => node.machines[state]);
    }
    await node.start();
    if (this.#stopping.signal.aborted) return;
    sandboxes.setRuntime("here");
    log.info({ node: nodeId, home: sandboxConfig(config).sandboxHome }, "taking sandboxes");
    await node.run();
  }

  /** The control plane, for a node that is in its process. */
  #options(): OpenNodeOptions {
    const { fabric, sandboxes } = this.#ports;
    const config = sandboxConfig(this.#parts.config);
    return {
      ...this.#parts,
      config,
      begins: "when needed",
      jobsOf: (nodeId) =>
        new LocalPort({
          ...this.#parts,
          fabric: fabric.deps.fabric,
          logs: fabric.deps.logs,
          credential: (hold, id) => revealFor(fabric.deps, hold, id),
          nodeId,
        }),
      images: sandboxes.deps.layers,
      controlOf: (nodeId) => new LocalControlPort({ nodeId, sandboxes: sandboxes.deps.sandboxes }),
      onGateways: () => this.#dialler?.dial(sandboxes.gateways.others),
      // A catalog of this computer is shared with nobody, and no other process has to be connected to.
      ...(config.catalogUrl.kind === "postgres" ? { identify: (home, name) => this.#identify(home, name) } : {}),
    };
  }

  async #identify(home: string, name: string): Promise<string> {
    const { workerId, token } = await ownWorker(join(home, "worker.json"), name, this.#ports.fabric.deps.workers);
    this.#token = token;
    return workerId;
  }
}
