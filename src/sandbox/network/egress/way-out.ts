import type { Socket } from "node:net";
import type { NetworkSpec } from "../../contract/spec.ts";
import type { DialableAddresses } from "./addresses.ts";
import { dialAny, dialThrough, type UpstreamProxy } from "./dial.ts";
import { EgressResolver } from "./resolver.ts";

/** As long as a server that thinks may be silent. */
const SILENT_MS = 600_000;

export type WayOutOptions = {
  dnsServers: NetworkSpec["dnsServers"];
  addresses: DialableAddresses;
  upstream: UpstreamProxy | undefined;
  onSocket: (socket: Socket) => void;
};

/** Connections of one sandbox to the network, and what goes over them. */
export class WayOut {
  readonly #options: WayOutOptions;
  readonly #resolver: EgressResolver;
  /** Sockets, each with what says whether it may still be there. */
  readonly #dialled = new Map<Socket, () => boolean>();
  /** Of connections that have ended. */
  readonly #past = { receivedBytes: 0, sentBytes: 0 };

  constructor(options: WayOutOptions) {
    this.#options = options;
    this.#resolver = new EgressResolver(options.addresses, options.dnsServers);
  }

  /** What came from the network, and what went there. */
  get traffic(): { receivedBytes: number; sentBytes: number } {
    let { receivedBytes, sentBytes } = this.#past;
    for (const socket of this.#dialled.keys()) {
      receivedBytes += socket.bytesRead;
      sentBytes += socket.bytesWritten;
    }
    return { receivedBytes, sentBytes };
  }

  /**
   * A connection to a canonical host, at an address that was judged; undefined when it may no longer be there. Rejects
   * with `EgressRefusal`.
   */
  async dial(host: string, port: number, mayBe: () => boolean): Promise<Socket | undefined> {
    const { upstream, addresses } = this.#options;
    const socket =
      upstream === undefined
        ? await dialAny(await this.#resolver.resolve(host), port)
        : await dialThrough(upstream, host, port, addresses);
    if (!mayBe()) {
      socket.destroy();
      return undefined;
    }
    socket.setTimeout(SILENT_MS, () => socket.destroy());
    this.#options.onSocket(socket);
    this.#dialled.set(socket, mayBe);
    socket.once("close", () => {
      this.#dialled.delete(socket);
      this.#past.receivedBytes += socket.bytesRead;
      this.#past.sentBytes += socket.bytesWritten;
    });
    return socket;
  }

  /** Ends connections that may no longer be there. */
  review(): void {
    for (const [socket, mayBe] of this.#dialled) if (!mayBe()) socket.destroy();
  }
}
