import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import type { TimerHandle } from "../../../core/clock.ts";
import { messageOf } from "../../../core/errors.ts";
import { Peer, type PeerPorts } from "./peer.ts";

/** All addresses of a name; rejects when it has none, or nobody can be asked. */
export type LookupAll = (hostname: string) => Promise<readonly string[]>;

/** The system's own way: the hosts file, then the name servers. */
export const systemLookup: LookupAll = async (hostname) =>
  (await lookup(hostname, { all: true, order: "verbatim" })).map(({ address }) => address);

export type PeersOptions = PeerPorts & { urls: readonly string[]; lookup: LookupAll };

/**
 * The peers of one kind: every address of every URL. Names are looked up again and again: an address that is new gets
 * requests, one that is gone finishes those it has. While a name cannot be looked up its last addresses stay.
 */
export class Peers {
  readonly #options: PeersOptions;
  /** By URL, then by address. */
  readonly #known = new Map<string, Map<string, Peer>>();
  /** Those that are finishing their last requests. */
  readonly #leaving = new Set<Peer>();
  readonly #unresolved = new Set<string>();
  #timer: TimerHandle | undefined;
  #stopped = false;

  constructor(options: PeersOptions) {
    this.#options = options;
    for (const url of options.urls) this.#known.set(url, new Map());
  }

  /** Resolves when every name was looked up once, whether or not that went well. */
  async start(): Promise<void> {
    await this.#resolveAll();
  }

  /** The usable peer with the fewest requests in flight, by chance among equals; `except` are not considered. */
  pick(except: ReadonlySet<Peer>): Peer | undefined {
    let best: Peer | undefined;
    let equals = 0;
    for (const peer of this.#all()) {
      if (!peer.usable || except.has(peer)) continue;
      if (best === undefined || peer.inFlight < best.inFlight) {
        best = peer;
        equals = 1;
      } else if (peer.inFlight === best.inFlight && this.#options.random.next() * ++equals < 1) best = peer;
    }
    return best;
  }

  /** Closes every connection at once. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await Promise.all([...this.#all(), ...this.#leaving].map((peer) => peer.destroy()));
  }

  *#all(): Iterable<Peer> {
    for (const peers of this.#known.values()) yield* peers.values();
  }

  async #resolveAll(): Promise<void> {
    await Promise.all(this.#options.urls.map((url) => this.#resolve(url)));
    if (this.#stopped || this.#options.urls.every((url) => isIP(hostnameOf(url)) !== 0)) return;
    const { clock, random, times } = this.#options;
    const delayMs = times.resolveEveryMs * (0.75 + random.next() / 2);
    this.#timer = clock.after(delayMs, () => void this.#resolveAll(), { background: true });
  }

  async #resolve(url: string): Promise<void> {
    const hostname = hostnameOf(url);
    try {
      const addresses = isIP(hostname) === 0 ? await this.#options.lookup(hostname) : [hostname];
      if (this.#stopped) return;
      if (this.#unresolved.delete(url)) this.#options.log.info({ url }, "the name of a peer can be looked up again");
      // An empty answer is no better than none.
      if (addresses.length > 0) this.#update(url, new Set(addresses));
    } catch (error) {
      if (this.#unresolved.has(url)) return;
      this.#unresolved.add(url);
      this.#options.log.warn({ url, reason: messageOf(error) }, "the name of a peer cannot be looked up");
    }
  }

  #update(url: string, addresses: ReadonlySet<string>): void {
    const peers = this.#known.get(url) ?? new Map<string, Peer>();
    for (const address of addresses) {
      if (!peers.has(address)) peers.set(address, new Peer(this.#options, url, address));
    }
    for (const [address, peer] of peers) {
      if (addresses.has(address)) continue;
      peers.delete(address);
      this.#leave(peer);
    }
  }

  #leave(peer: Peer): void {
    const { log } = this.#options;
    log.info({ peer: peer.name }, "a peer has left its name");
    this.#leaving.add(peer);
    peer
      .stop()
      .catch((error: unknown) => log.error({ err: error, peer: peer.name }, "could not let go of a peer"))
      .finally(() => this.#leaving.delete(peer));
  }
}

function hostnameOf(url: string): string {
  return new URL(url).hostname.replace(/^\[|\]$/g, "");
}
