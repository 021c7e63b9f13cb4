import type { Clock } from "../../../core/clock.ts";
import type { Log } from "../../../core/log.ts";
import type { Gateway } from "../gateway/gateway.ts";
import type { Machine } from "../../runtime/runtime.ts";
import type { NetworkSpec } from "../../contract/spec.ts";
import { DialableAddresses } from "./addresses.ts";
import type { UpstreamProxy } from "./dial.ts";
import { certificateEnvironment, proxyEnvironment } from "./environment.ts";
import { EgressProxy } from "./proxy.ts";

/** Where what is set up in a sandbox may come from, each for its step alone: the operator's lists, as rules of hosts. */
export type SetupSources = {
  repositoryHosts: readonly string[];
  /** Whether repositories may be cloned over HTTP without TLS. */
  plainHttp: boolean;
  registryHosts: readonly string[];
};

export type EgressOptions = {
  /** Ranges of addresses that sandboxes may reach beyond the public ones. Throws for what is no range. */
  allowedRanges: readonly string[];
  /** `http://user:password@host:port` of a proxy that all connections go through. */
  upstream: URL | undefined;
  /** Certificate authorities that sandboxes trust beyond those of their image, in PEM. */
  certificates: string | undefined;
  sources: SetupSources;
  clock: Clock;
  log: Log;
};

/** What a node lets its sandboxes reach: each has a proxy of its own, by the rules of its owner and the operator's. */
export class Egress {
  readonly certificates: string | undefined;
  readonly sources: SetupSources;
  readonly #options: EgressOptions;
  readonly #addresses: DialableAddresses;
  readonly #upstream: UpstreamProxy | undefined;

  constructor(options: EgressOptions) {
    this.#options = options;
    this.certificates = options.certificates;
    this.sources = options.sources;
    this.#addresses = new DialableAddresses(options.allowedRanges);
    this.#upstream = options.upstream === undefined ? undefined : upstreamOf(options.upstream);
  }

  /** What programs in a sandbox find their way out by. */
  environment({ enabled }: Pick<NetworkSpec, "enabled">): Record<string, string> {
    if (!enabled) return {};
    return { ...proxyEnvironment(), ...(this.certificates === undefined ? {} : certificateEnvironment()) };
  }

  /**
   * Answers what the machine of a sandbox with a network asks for, until the returned proxy is closed, and with it the
   * gateway of its secrets.
   */
  open(machine: Pick<Machine, "id" | "onEgress">, network: NetworkSpec, gateway?: Gateway): EgressProxy {
    const { clock, log } = this.#options;
    const proxy = new EgressProxy({
      network,
      addresses: this.#addresses,
      upstream: this.#upstream,
      gateway,
      clock,
      onRequest: ({ refused, ...entry }) => {
        if (refused === undefined) log.debug({ sandboxId: machine.id, ...entry }, "let a sandbox out");
        else log.info({ sandboxId: machine.id, ...entry, reason: refused }, "did not let a sandbox out");
      },
    });
    machine.onEgress((connection) => proxy.accept(connection));
    return proxy;
  }
}

function upstreamOf({ hostname, port, username, password }: URL): UpstreamProxy {
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return {
    host: hostname.replace(/^\[(.*)\]$/, "$1"),
    port: port === "" ? 80 : Number(port),
    authorization: username === "" ? undefined : `Basic ${Buffer.from(credentials).toString("base64")}`,
  };
}
